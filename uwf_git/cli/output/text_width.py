"""Width of text on a terminal, in columns: the only use of wcwidth."""

from collections.abc import Iterator

_ELLIPSIS = "…"


def display_width(text: str) -> int:
    """Count the columns that *text* takes; it must hold no control characters."""
    if text.isascii():
        return len(text)
    from wcwidth import width  # noqa: PLC0415 (start-up: most output is ASCII)

    return width(text)


def shorten(text: str, width: int, *, end: str = _ELLIPSIS) -> str:
    """Cut *text* to at most *width* columns, between characters, with *end* at the cut."""
    if display_width(text) <= width:
        return text
    room = width - 1
    shown: list[str] = []
    for character in _characters(text):
        room -= display_width(character)
        if room < 0:
            break
        shown.append(character)
    return "".join(shown) + end


def _characters(text: str) -> Iterator[str]:
    """Return the characters as people count them: with combining marks, a joined emoji as one."""
    if text.isascii():
        return iter(text)
    from wcwidth import iter_graphemes  # noqa: PLC0415 (start-up: most output is ASCII)

    return iter_graphemes(text)
