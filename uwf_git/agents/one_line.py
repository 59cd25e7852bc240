"""One line: what an agent said, made fit for a message.

Owns: the cleaning of quoted output. Knows nothing of: what is quoted.
Always true: the line can be printed on any terminal and moves no cursor there.
"""


def on_one_line(text: str) -> str:
    """Give *text* without control characters and line breaks, and runs of blanks as one."""
    cleaned = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(cleaned.split())


def show_beginning(text: str, *, limit: int = 80) -> str:
    """Give the beginning of *text* on one line; an ellipsis says that there is more."""
    # Cleaning may shrink it; four times as much is enough for all but pages of blanks.
    shown = on_one_line(text[: 4 * limit])
    is_cut = len(shown) > limit or len(text) > 4 * limit
    return shown[:limit] + ("…" if is_cut else "")
