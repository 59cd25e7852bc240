"""Quoted output on one line, printable on any terminal."""


def on_one_line(text: str) -> str:
    """Return *text* without control characters and line breaks, runs of blanks as one."""
    cleaned = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(cleaned.split())


def show_beginning(text: str, *, limit: int = 80) -> str:
    """Return the beginning of *text* on one line, with an ellipsis if it was cut."""
    # Cleaning shrinks the text; four times the limit is enough for all but pages of blanks.
    shown = on_one_line(text[: 4 * limit])
    is_cut = len(shown) > limit or len(text) > 4 * limit
    return shown[:limit] + ("…" if is_cut else "")
