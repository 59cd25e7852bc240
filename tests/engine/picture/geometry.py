"""What is wrong with a drawing: texts and lines that lie where they must not."""

import functools
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import NamedTuple, TypeAlias

from uwf_git.engine.picture.labels import Box, Drawing, Line, Text

_NEAR = 3
"""Pixels: lines nearer than that look like one."""


class Rect(NamedTuple):
    """From the left top to the right bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Rect", *, by: float = 0) -> bool:
        """Check whether both have an area in common that is wider than *by*."""
        return (
            min(self.right, other.right) - max(self.left, other.left) > by
            and min(self.bottom, other.bottom) - max(self.top, other.top) > by
        )

    def holds(self, other: "Rect") -> bool:
        """Check whether *other* is within it."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.right <= self.right
            and other.bottom <= self.bottom
        )


@functools.cache
def text_rect(text: Text) -> Rect:
    """Return where *text* is: an ascent of 0.95 and a descent of 0.25 of its size."""
    left = text.x - (text.width / 2 if text.anchor == "middle" else 0)
    size = text.style.size
    return Rect(left, text.y - 0.95 * size, left + text.width, text.y + 0.25 * size)


def box_rect(box: Box) -> Rect:
    """Return where *box* is."""
    return Rect(box.x, box.y, box.x + box.width, box.y + box.height)


Measure: TypeAlias = Callable[[Text], Rect]


def find_faults(drawing: Drawing, measure: Measure = text_rect) -> list[str]:
    """Return all that is wrong with *drawing*, whose texts are where *measure* says."""
    return [
        *_texts(drawing, measure),
        *_texts_and_boxes(drawing, measure),
        *_badges(drawing, measure),
        *_boxes(drawing),
        *_lines(drawing),
        *_lines_and_texts(drawing, measure),
    ]


def _is_around(box: Box, key: str) -> bool:
    return key == box.key or key.startswith(box.key + "/")


def _texts(drawing: Drawing, measure: Measure) -> Iterator[str]:
    picture = Rect(0, 0, drawing.width, drawing.height)
    texts = [*drawing.texts, *(text for _, text in drawing.badges)]
    rects = [measure(text) for text in texts]
    for text, rect in zip(texts, rects, strict=True):
        if not picture.holds(rect):
            yield f"outside the picture: {text}"
    order = sorted(range(len(texts)), key=lambda n: rects[n].top)
    for place, one in enumerate(order):
        for other in order[place + 1 :]:
            if rects[other].top >= rects[one].bottom:
                break
            if rects[one].meets(rects[other]):
                yield f"texts over one another: {texts[one]} {texts[other]}"


def _texts_and_boxes(drawing: Drawing, measure: Measure) -> Iterator[str]:
    for text in drawing.texts:
        rect = measure(text)
        own = [box for box in drawing.boxes if box.key == text.key and "bar" not in box.kind]
        if own and not any(box_rect(box).holds(rect) for box in own):
            yield f"beyond its box: {text}"
        for box in drawing.boxes:
            if not _is_around(box, text.key) and box_rect(box).meets(rect):
                yield f"on a foreign box: {text} {box}"
        for box, _ in drawing.badges:
            if box_rect(box).meets(rect):
                yield f"below a badge: {text} {box}"


def _badges(drawing: Drawing, measure: Measure) -> Iterator[str]:
    for box, text in drawing.badges:
        if not box_rect(box).holds(measure(text)):
            yield f"beyond its badge: {text} {box}"
        for other in drawing.boxes:
            if not _is_around(other, box.key) and box_rect(other).meets(box_rect(box)):
                yield f"a badge on a foreign box: {box} {other}"


def _boxes(drawing: Drawing) -> Iterator[str]:
    picture = Rect(0, 0, drawing.width, drawing.height)
    for box in drawing.boxes:
        if not picture.holds(box_rect(box)):
            yield f"outside the picture: {box}"
    for one, other in combinations(drawing.boxes, 2):
        inside = _is_around(one, other.key) or _is_around(other, one.key)
        if not inside and box_rect(one).meets(box_rect(other)):
            yield f"boxes over one another: {one} {other}"
        if inside and one.key != other.key:
            outer, inner = (one, other) if _is_around(one, other.key) else (other, one)
            if outer.kind != "bar" and not box_rect(outer).holds(box_rect(inner)):
                yield f"beyond the container: {inner} {outer}"


class Segment(NamedTuple):
    """A straight piece of a line."""

    line: int
    rect: Rect
    is_upright: bool


def _segments(drawing: Drawing) -> list[Segment]:
    found = []
    for number, line in enumerate(drawing.lines):
        for (x0, y0), (x1, y1) in (pair for part in line.parts for pair in pairwise(part)):
            assert x0 == x1 or y0 == y1, line
            rect = Rect(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
            found.append(Segment(number, rect, x0 == x1))
    return found


def _lines(drawing: Drawing) -> Iterator[str]:
    segments = _segments(drawing)
    picture = Rect(0, 0, drawing.width, drawing.height)
    for segment in segments:
        if not picture.holds(segment.rect):
            yield f"outside the picture: {drawing.lines[segment.line]}"
    for upright in (True, False):
        same = [each for each in segments if each.is_upright == upright]
        same.sort(key=lambda each: each.rect.left if each.is_upright else each.rect.top)
        for number, one in enumerate(same):
            for other in same[number + 1 :]:
                if _apart(one, other) >= _NEAR:
                    break
                if one.line != other.line and _run_along(one, other):
                    yield f"on one line: {drawing.lines[one.line]} {drawing.lines[other.line]}"


def _apart(one: Segment, other: Segment) -> float:
    a, b = one.rect, other.rect
    return abs(a.left - b.left if one.is_upright else a.top - b.top)


def _run_along(one: Segment, other: Segment) -> bool:
    a, b = one.rect, other.rect
    if one.is_upright:
        return min(a.bottom, b.bottom) > max(a.top, b.top)
    return min(a.right, b.right) > max(a.left, b.left)


def _lines_and_texts(drawing: Drawing, measure: Measure) -> Iterator[str]:
    """A line runs through no text, and through no box without children."""
    segments = _segments(drawing)
    containers = {
        box.key
        for box in drawing.boxes
        if any(other.key != box.key and _is_around(box, other.key) for other in drawing.boxes)
    }
    leaves = [box for box in drawing.boxes if box.key not in containers and box.kind != "bar"]
    for segment in segments:
        rect = segment.rect
        wide = Rect(rect.left - 1, rect.top - 1, rect.right + 1, rect.bottom + 1)
        line: Line = drawing.lines[segment.line]
        for text in (*drawing.texts, *(text for _, text in drawing.badges)):
            if wide.meets(measure(text)):
                yield f"through a text: {line} {text}"
        for box in leaves:
            if wide.meets(box_rect(box), by=1):
                yield f"through a box: {line} {box}"
