"""A laid out picture: boxes, texts and lines, in whole pixels."""

from typing import Literal, NamedTuple, TypeAlias

from uwf_git.engine.picture.text_size import Face, cut, measure

Point: TypeAlias = tuple[int, int]
Anchor = Literal["start", "middle"]


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
    anchor: Anchor = "start"
    whole: str = ""
    """The whole text where this is a part of it."""

    kind: str = ""
    """More classes."""

    @property
    def width(self) -> int:
        """The guessed width in pixels."""
        return measure(self.text, self.style.size, self.style.face)


class Line(NamedTuple):
    """A way: one or more parts, as a label may lie between them."""

    parts: tuple[tuple[Point, ...], ...]
    kind: str
    has_arrow: bool = True


class Drawing(NamedTuple):
    """A picture, from back to front: boxes, lines, texts, then badges."""

    title: str
    about: str
    """All of it in words."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    texts: tuple[Text, ...]
    badges: tuple[tuple[Box, Text], ...]


def fit(text: str, room: int, style: Style) -> str:
    """Return *text*, cut to *room* pixels."""
    return cut(text, room, lambda part: measure(part, style.size, style.face))


def width_of(text: str, style: Style) -> int:
    """Return the guessed width of *text* in *style*."""
    return measure(text, style.size, style.face)
