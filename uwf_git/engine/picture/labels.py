"""Texts of several lines, and badges: the parts that both layouts draw alike."""

from collections.abc import Sequence
from typing import NamedTuple

from uwf_git.engine.picture.drawing import BADGE, LABEL, NAME, Box, Style, Text, fit, width_of
from uwf_git.engine.picture.plan import Mark
from uwf_git.engine.picture.text_size import ELLIPSIS, wrap

LINE = 14
"""Pixels from one base line to the next."""

MARGIN = 16
"""Around the whole picture."""

END_HEIGHT = 26
_COLUMNS = 44
_MOST_LINES = 3
_INDENT = width_of("   ", LABEL)
_BADGE_HEIGHT = 16
_BESIDE_BADGE = 14
_WIDEST_BADGE = 240
_OVER = 6
"""How far a badge sticks out of its box, on the right."""


class LabelLine(NamedTuple):
    """One line of a label."""

    text: str
    indent: int
    whole: str
    """The whole label, if lines are missing."""


class Label(NamedTuple):
    """Lines beside a way, or below a heading."""

    lines: tuple[LabelLine, ...]

    @property
    def width(self) -> int:
        """Pixels, with the indents."""
        return max((each.indent + width_of(each.text, LABEL) for each in self.lines), default=0)

    @property
    def height(self) -> int:
        """Pixels."""
        return LINE * len(self.lines)

    def place(self, x: int, top: int, key: str) -> list[Text]:
        """Return the texts, from (*x*, *top*) on."""
        return [
            Text(
                x + each.indent,
                top + 11 + LINE * number,
                each.text,
                LABEL,
                key,
                "start",
                each.whole,
            )
            for number, each in enumerate(self.lines)
        ]


def make_label(texts: Sequence[str], *, hanging: bool = True) -> Label:
    """Return the label of *texts*, each in at most three lines of 44 columns."""
    lines: list[LabelLine] = []
    for text in texts:
        indent = _INDENT if hanging else 0
        parts = wrap(text, _COLUMNS)
        if len(parts) > _MOST_LINES:
            parts = [*parts[: _MOST_LINES - 1], parts[_MOST_LINES - 1].rstrip() + ELLIPSIS]
        whole = text if parts[-1].endswith(ELLIPSIS) and not text.endswith(ELLIPSIS) else ""
        lines += [
            LabelLine(part, indent if number else 0, whole) for number, part in enumerate(parts)
        ]
    return Label(tuple(lines))


def mark_classes(kind: str, mark: Mark | None) -> str:
    """Return *kind* with the class of *mark*."""
    return kind if mark is None else f"{kind} is-{mark.state}"


def room_for_badge(mark: Mark | None) -> int:
    """Return how wide a box has to be for the badge of *mark*."""
    return 0 if mark is None else 2 * (width_of(mark.badge, BADGE) + _BESIDE_BADGE)


def make_badge(mark: Mark, box: Box, axis: int) -> tuple[Box, Text]:
    """Return the badge at the top right corner of *box*, right of the way into it at *axis*."""
    room = min(box.x + box.width - axis - _BESIDE_BADGE, _WIDEST_BADGE)
    shown = fit(mark.badge, room, BADGE)
    width = width_of(shown, BADGE) + 12
    x, y = box.x + box.width + _OVER - width, box.y - _BADGE_HEIGHT + 5
    shape = Box(x, y, width, _BADGE_HEIGHT, f"badge is-{mark.state}", box.key, _BADGE_HEIGHT // 2)
    text = Text(x + width // 2, y + 12, shown, BADGE, box.key, "middle", mark.badge)
    return shape, text._replace(kind=f"is-{mark.state}")


def make_line(box: Box, text: str, style: Style, y: int) -> Text:
    """Return *text* in the middle of *box*, cut to it, *y* below its top."""
    shown = fit(text, box.width - 16, style)
    whole = "" if shown == text else text
    return Text(box.x + box.width // 2, box.y + y, shown, style, box.key, "middle", whole)


def end_text(name: str, mark: Mark | None) -> str:
    """Return what stands in the start or the end."""
    return name if mark is None else fit(f"{name} · {mark.badge}", _WIDEST_BADGE, NAME)


def end_width(text: str) -> int:
    """Return the width of the start or the end with *text*."""
    width = max(56, width_of(text, NAME) + 28)
    return width + width % 2
