"""A laid out picture: how wide text is, boxes and lines, texts of several lines, and its words."""

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from uwf_git.engine.picture.plan import Block, FlowPlan, GraphPlan, Mark

# How wide text is, guessed: in pixels, on the safe side for common fonts, and in columns.
#
# Source: the widths of DejaVu Sans Bold, the widest of the usual fonts without serifs, in
# hundredths of the font's size.

Face = Literal["bold", "plain", "mono"]


class Style(NamedTuple):
    """How a text is set; its name is a class of the style sheet."""

    name: str
    size: int
    face: Face


NAME = Style("name", 13, "bold")
NOTE = Style("note", 11, "plain")
LABEL = Style("label", 11, "mono")
HEADING = Style("heading", 11, "bold")
BADGE = Style("badge", 10, "bold")
ALL_STYLES = (NAME, NOTE, LABEL, HEADING, BADGE)

ELLIPSIS = "…"

_BY_WIDTH = {
    36: " 'ijl",
    42: ",-./:;IJ\\|·",
    48: "!()[]ft",
    54: '"*_`r‖',
    60: "?csz",
    66: "Lvxy“”",
    72: "0123456789$EFSTYabdeghknopqu{}",
    78: "ABCKPRVXZ▶",
    84: "#+<=>DGHNU^~✓✗→↺",
    90: "&OQ",
    96: "w",
    102: "%@M…",
    108: "m",
    114: "W",
}
_WIDTHS = {character: width for width, all_ in _BY_WIDTH.items() for character in all_}
_OTHERS = 110
_EMOJI = 140
_MONO = 61
_PLAIN = 0.92
_KNOWN_BELOW = "\u0250"
"""ASCII and the Latin letters: their guesses hold in any common font."""


def width_of(text: str, style: Style) -> int:
    """Return the guessed width of *text* in pixels: at least what common fonts need."""
    hundredths = sum(_width(character, style.face) for character in text)
    # An ideograph is as wide in either face.
    is_thin = style.face == "plain" and not any(map(_is_ideograph, text))
    return math.ceil(hundredths * style.size * (_PLAIN if is_thin else 1) / 100)


def is_sure(text: str) -> bool:
    """Check that a font can hardly be wider than was guessed: no rare script, no emoji."""
    return all(each < _KNOWN_BELOW or each in _WIDTHS or _is_ideograph(each) for each in text)


def columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def cut(text: str, room: int, width: Callable[[str], int]) -> str:
    """Return *text* with an ellipsis where it would be wider than *room*, as *width* tells."""
    if width(text) <= room:
        return text
    fitting = range(1, len(text) + 1)
    most = bisect_right(fitting, room, key=lambda count: width(text[:count] + ELLIPSIS))
    return text[:most].rstrip() + ELLIPSIS


def wrap(text: str, room: int, indent: str = "") -> list[str]:
    """Return *text* in lines of at most *room* columns, all but the first after *indent*."""
    lines, line, used = [], "", 0
    for piece in _pieces(text, room - len(indent)):
        wide = columns(piece)
        gap = 1 if line.strip() and not piece.startswith("\0") else 0
        if used and used + gap + wide > room:
            lines.append(line)
            line, used, gap = indent, len(indent), 0
        line += " " * gap + piece.removeprefix("\0")
        used += gap + wide
    return [*lines, line]


def _pieces(text: str, room: int) -> Iterator[str]:
    """Yield the words; longer ones in pieces, of which all but the first begin with a NUL."""
    for word in text.split():
        mark, rest = "", word
        while columns(rest) > room:
            size = _fitting(rest, room)
            yield mark + rest[:size]
            mark, rest = "\0", rest[size:]
        yield mark + rest


def _fitting(text: str, room: int) -> int:
    """Return how many characters of *text* fit, one at least."""
    used = 0
    for number, character in enumerate(text):
        used += _columns(character)
        if used > room:
            return max(number, 1)
    return len(text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _is_ideograph(character: str) -> bool:
    wide = unicodedata.east_asian_width(character) in {"W", "F"}
    return wide and unicodedata.category(character) in {"Lo", "Po", "Ps", "Pe", "Lm", "Lu", "Ll"}


def _width(character: str, face: Face) -> int:
    if face == "mono" and (character.isascii() or character in _WIDTHS):
        return _MONO
    if character in _WIDTHS:
        return _WIDTHS[character]
    if _is_ideograph(character):
        return 100
    return _EMOJI if unicodedata.east_asian_width(character) in {"W", "F"} else _OTHERS


# A laid out picture: boxes, texts and lines, in whole pixels.

Point: TypeAlias = tuple[int, int]


class Box(NamedTuple):
    """A rectangle; *kind* has the classes that colour it."""

    x: int
    y: int
    width: int
    height: int
    kind: str
    key: str
    """What it belongs to: a text may lie on boxes of its own key, and of those around it."""

    radius: int = 6


class Text(NamedTuple):
    """One line of text; (*x*, *y*) is on its base line."""

    x: int
    y: int
    text: str
    style: Style
    key: str
    anchor: Literal["start", "middle"] = "start"
    whole: str = ""

    kind: str = ""

    @property
    def width(self) -> int:
        """The guessed width in pixels."""
        return width_of(self.text, self.style)


_Placed = TypeVar("_Placed", Box, Text)


class Line(NamedTuple):
    """A way: one or more parts, as a label may lie between them."""

    parts: tuple[tuple[Point, ...], ...]
    kind: str
    has_arrow: bool = True


class Drawing(NamedTuple):
    """A picture, from back to front: boxes, lines, texts, then badges."""

    title: str
    about: str

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    texts: tuple[Text, ...]
    badges: tuple[tuple[Box, Text], ...]


class Piece(NamedTuple):
    """A part of a drawing from (0, 0) on; a way enters and leaves it at *axis*."""

    width: int
    height: int
    axis: int
    boxes: tuple[Box, ...] = ()
    lines: tuple[Line, ...] = ()
    texts: tuple[Text, ...] = ()
    badges: tuple[tuple[Box, Text], ...] = ()

    def moved(self, x: int, y: int) -> "Piece":
        def shift(part: tuple[Point, ...]) -> tuple[Point, ...]:
            return tuple((px + x, py + y) for px, py in part)

        return self._replace(
            boxes=tuple(_moved(box, x, y) for box in self.boxes),
            lines=tuple(line._replace(parts=tuple(map(shift, line.parts))) for line in self.lines),
            texts=tuple(_moved(text, x, y) for text in self.texts),
            badges=tuple((_moved(box, x, y), _moved(text, x, y)) for box, text in self.badges),
        )

    def holding(self, *inner: "Piece") -> "Piece":
        """Return it with the parts of *inner*, which have their place already, on top."""
        return self._replace(
            boxes=self.boxes + tuple(each for piece in inner for each in piece.boxes),
            lines=self.lines + tuple(each for piece in inner for each in piece.lines),
            texts=self.texts + tuple(each for piece in inner for each in piece.texts),
            badges=self.badges + tuple(each for piece in inner for each in piece.badges),
        )

    def drawn(self, title: str, about: str, width: int, height: int) -> Drawing:
        texts = tuple(text for text in self.texts if text.text)
        return Drawing(title, about, width, height, self.boxes, self.lines, texts, self.badges)


def _moved(what: _Placed, x: int, y: int) -> _Placed:
    return what._replace(x=what.x + x, y=what.y + y)


def fit(text: str, room: int, style: Style) -> str:
    return cut(text, room, lambda part: width_of(part, style))


# Pictures in words: all that one shows, for who cannot see it.


def tell_graph(plan: GraphPlan) -> str:
    """Return the graph in sentences: its transitions, and where a thread is."""
    sentences = [plan.about] if plan.about else []
    for number, station in enumerate(plan.stations):
        ways = [
            f"{' or '.join(way.labels)}{': ' if way.labels else ''}{plan.stations[way.target].name}"
            for way in plan.ways
            if way.source == number
        ]
        if ways:
            sentences.append(f"From {station.name} to {'; '.join(ways)}.")
        if not station.is_reached:
            sentences.append(f"Nothing leads to {station.name}.")
        sentences += _tell_mark(station.name, station.mark)
    return " ".join(sentences)


def tell_flow(plan: FlowPlan) -> str:
    """Return the flow in sentences: what is in what, and where a thread is."""
    sentences = [plan.about] if plan.about else []
    sentences += [*_tell_mark("start", plan.marks[0])]
    blocks = "; then ".join(map(_tell_block, plan.blocks))
    sentences.append(f"From start to {blocks}; then end.")
    for block in plan.blocks:
        sentences += _tell_marks(block)
    sentences += [*_tell_mark("end", plan.marks[1])]
    return " ".join(sentences)


def _tell_block(block: Block) -> str:
    if not block.branches:
        return block.name
    note = f" ({block.note})" if block.note else ""
    between = " beside " if block.kind == "parallel" else "; "
    told = between.join(
        f"{f'{branch.label}: ' if branch.label else ''}"
        f"{', then '.join(map(_tell_block, branch.blocks)) or 'nothing'}"
        for branch in block.branches
    )
    return f"{block.name}{note} of [{told}]"


def _tell_marks(block: Block) -> Iterator[str]:
    yield from _tell_mark(block.name, block.mark)
    for branch in block.branches:
        for inner in branch.blocks:
            yield from _tell_marks(inner)


def _tell_mark(name: str, mark: Mark | None) -> Iterator[str]:
    if mark is not None:
        yield f"{name}: {mark.words}."


# Texts of several lines, and badges: the parts that both layouts draw alike.

LINE = 14
"""Pixels from one base line to the next."""

MARGIN = 16
"""Around the whole picture."""

END_HEIGHT = 26
_COLUMNS = 44
_MOST_LINES = 3
_BADGE_HEIGHT = 16
_BESIDE_BADGE = 14
_WIDEST_BADGE = 240
_OVER = 6
"""How far a badge sticks out of its box, on the right."""


class LabelLine(NamedTuple):
    text: str
    indent: int
    whole: str


class Label(NamedTuple):
    """Lines beside a way, or below a heading."""

    lines: tuple[LabelLine, ...]

    @property
    def width(self) -> int:
        return max((each.indent + width_of(each.text, LABEL) for each in self.lines), default=0)

    @property
    def height(self) -> int:
        return LINE * len(self.lines)

    def place(self, x: int, top: int, key: str) -> list[Text]:
        return [
            Text(x + each.indent, top + 11 + LINE * number, each.text, LABEL, key, whole=each.whole)
            for number, each in enumerate(self.lines)
        ]


def make_label(texts: Sequence[str], *, hanging: bool = True) -> Label:
    """Return the label of *texts*, each in at most three lines of 44 columns."""
    lines: list[LabelLine] = []
    indent = width_of("   ", LABEL) if hanging else 0
    for text in texts:
        parts = wrap(text, _COLUMNS)
        if len(parts) > _MOST_LINES:
            parts = [*parts[: _MOST_LINES - 1], parts[_MOST_LINES - 1].rstrip() + ELLIPSIS]
        whole = text if parts[-1].endswith(ELLIPSIS) and not text.endswith(ELLIPSIS) else ""
        lines += [LabelLine(part, indent if at else 0, whole) for at, part in enumerate(parts)]
    return Label(tuple(lines))


def mark_classes(kind: str, mark: Mark | None) -> str:
    return kind if mark is None else f"{kind} is-{mark.state}"


def room_for_badge(mark: Mark | None) -> int:
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


def make_texts(box: Box, name: str, note: str = "") -> tuple[Text, ...]:
    """Return the name of *box* in its middle, and the note, if there is one, below the name."""
    middle = box.height // 2
    texts = [make_line(box, name, NAME, middle + (-3 if note else 5))]
    if note:
        texts.append(make_line(box, note, NOTE, middle + 13))
    return tuple(text._replace(kind=box.kind) for text in texts)


def end_text(name: str, mark: Mark | None) -> str:
    return name if mark is None else fit(f"{name} · {mark.badge}", _WIDEST_BADGE, NAME)


def end_width(text: str) -> int:
    width = max(56, width_of(text, NAME) + 28)
    return width + width % 2
