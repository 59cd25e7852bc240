"""The layout of graphs: a spine with lanes.

The stations stand in a column. The way to the next station goes straight down; a way further down
is a lane on the right, a way back a lane on the left, the shortest nearest to the spine. Each way
meets a station at a height of its own, so no two ways run on the same line.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from uwf_git.engine.picture.labels import (
    END_HEIGHT,
    MARGIN,
    NAME,
    Box,
    Drawing,
    Line,
    Piece,
    Point,
    Text,
    end_text,
    end_width,
    make_badge,
    make_label,
    make_texts,
    mark_classes,
    room_for_badge,
    tell_graph,
    width_of,
)
from uwf_git.engine.picture.plan import GraphPlan, Station

_NARROWEST, _WIDEST = 200, 280
_GAP = 28
_STUB = 14
"""From a station's edge to its label."""

_ENTRY = 12
"""The height that a way needs where it comes in."""

_LANE = 12
_AROUND_LABEL = 5


class _Side(NamedTuple):
    exits: tuple[int, ...]
    entries: tuple[int, ...]


def lay_out_graph(plan: GraphPlan) -> Drawing:
    return _Spine(plan).draw()


class _Spine:
    """One layout; the middle of the spine is at x = 0 until all is drawn."""

    def __init__(self, plan: GraphPlan) -> None:
        self._plan = plan
        self._labels = [make_label(way.labels) for way in plan.ways]
        self._wide = _station_width(plan.stations)
        ways = list(enumerate(plan.ways))
        self._straight = [n for n, way in ways if way.target == way.source + 1]
        self._right = [n for n, way in ways if way.target > way.source + 1]
        self._left = [n for n, way in ways if way.target <= way.source]
        self._boxes: list[Box] = []
        self._exit_y: dict[int, int] = {}
        self._entry_y: dict[int, int] = {}

    def draw(self) -> Drawing:
        self._place_stations()
        lines, texts = self._draw_straight()
        ends = [text.x + text.width for text in texts]
        for numbers, sign in ((self._right, 1), (self._left, -1)):
            more_lines, more_texts = self._draw_lanes(numbers, sign, ends if sign > 0 else [])
            lines += more_lines
            texts += more_texts
        badges: list[tuple[Box, Text]] = []
        for box, station in zip(self._boxes, self._plan.stations, strict=True):
            if station.is_end:
                texts += make_texts(box, end_text(station.name, station.mark))
                continue
            texts += make_texts(box, station.name, station.note)
            if station.mark is not None:
                badges.append(make_badge(station.mark, box, 0))
        xs = [x for line in lines for part in line.parts for x, _ in part]
        ends = [text.x + text.width for text in texts if text.anchor == "start"]
        ends += [box.x + box.width for box in (*self._boxes, *(badge for badge, _ in badges))]
        # The left end of the drawing goes to the margin.
        by = MARGIN - min([*xs, *(box.x for box in self._boxes)])
        width = max(*xs, *ends) + by + MARGIN
        height = self._boxes[-1].y + self._boxes[-1].height + MARGIN
        whole = Piece(0, 0, 0, tuple(self._boxes), tuple(lines), tuple(texts), tuple(badges))
        return whole.moved(by, 0).drawn(self._plan.title, tell_graph(self._plan), width, height)

    def _place_stations(self) -> None:
        """Place the stations from the top, and give each way the heights at which it meets them."""
        y = MARGIN
        labels = {self._plan.ways[n].source: self._labels[n] for n in self._straight}
        for number, station in enumerate(self._plan.stations):
            sides = self._side(number, self._right), self._side(number, self._left)
            tall = max(_height(station), *(self._needed(side) + 16 for side in sides))
            wide = self._wide
            if station.is_end:
                wide = end_width(end_text(station.name, station.mark))
            kind = mark_classes(_kind(station), station.mark)
            radius = END_HEIGHT // 2 if station.is_end else 6
            box = Box(-(wide // 2), y, wide, tall, kind, str(number), radius)
            self._boxes.append(box)
            right, left = sides
            self._meet(box, right, exits_first=False)
            self._meet(box, left, exits_first=True)
            label = labels.get(number)
            y += tall + _GAP + (label.height if label is not None else 0)

    def _side(self, station: int, numbers: Sequence[int]) -> _Side:
        """Return the ways of *numbers* at *station*, in the order in which fewest cross."""
        ways = self._plan.ways
        exits = [n for n in numbers if ways[n].source == station]
        entries = [n for n in numbers if ways[n].target == station]
        exits.sort(key=lambda n: (ways[n].target == station, -ways[n].target))
        entries.sort(key=lambda n: (ways[n].source != station, -ways[n].source))
        return _Side(tuple(exits), tuple(entries))

    def _needed(self, side: _Side) -> int:
        return sum(map(self._slot, side.exits)) + _ENTRY * len(side.entries)

    def _slot(self, number: int) -> int:
        return max(self._labels[number].height + 6, _ENTRY)

    def _meet(self, box: Box, side: _Side, *, exits_first: bool) -> None:
        y = box.y + (box.height - self._needed(side)) // 2
        for is_exit in (True, False) if exits_first else (False, True):
            for number in side.exits if is_exit else side.entries:
                slot = self._slot(number) if is_exit else _ENTRY
                (self._exit_y if is_exit else self._entry_y)[number] = y + slot // 2
                y += slot

    def _draw_straight(self) -> tuple[list[Line], list[Text]]:
        lines, texts = [], []
        for number in self._straight:
            way = self._plan.ways[number]
            top, bottom = self._boxes[way.source], self._boxes[way.target].y
            start = top.y + top.height
            lines.append(Line((((0, start), (0, bottom)),), "way"))
            texts += self._labels[number].place(8, start + 6, f"way {number}")
        return lines, texts

    def _draw_lanes(
        self, numbers: Sequence[int], sign: int, ends: Sequence[int]
    ) -> tuple[list[Line], list[Text]]:
        """Draw the ways *numbers* on the right (*sign* 1) or on the left (-1), beyond *ends*."""
        starts = {n: self._edge(self._plan.ways[n].source) + _STUB for n in numbers}
        labelled = [starts[n] + self._labels[n].width for n in numbers]
        widest = max(box.width for box in self._boxes)
        first = max([widest // 2 + 12, *labelled, *ends]) + _AROUND_LABEL + 5
        lanes = self._choose_lanes(numbers)
        lines, texts = [], []
        for number in numbers:
            way, label = self._plan.ways[number], self._labels[number]
            y, x = self._exit_y[number], first + _LANE * lanes[number]
            entry = self._entry_y[number]
            parts: list[tuple[Point, ...]] = []
            at = self._edge(way.source)
            if label.lines:
                parts.append(((at, y), (starts[number] - _AROUND_LABEL, y)))
                at = starts[number] + label.width + _AROUND_LABEL
            parts.append(((at, y), (x, y), (x, entry), (self._edge(way.target), entry)))
            lines.append(
                Line(
                    tuple(tuple((sign * px, py) for px, py in part) for part in parts),
                    "way" if sign > 0 else "way back",
                )
            )
            left = starts[number] if sign > 0 else -starts[number] - label.width
            texts += label.place(left, y - label.height // 2, f"way {number}")
        return lines, texts

    def _edge(self, station: int) -> int:
        return self._boxes[station].width // 2

    def _choose_lanes(self, numbers: Iterable[int]) -> dict[int, int]:
        """Give each way the nearest lane that is free along it, the shortest first."""
        spans = {n: sorted((self._exit_y[n], self._entry_y[n])) for n in numbers}
        lanes: list[list[int]] = []
        chosen = {}
        for number in sorted(spans, key=lambda n: (spans[n][1] - spans[n][0], n)):
            low, high = spans[number]
            lane = 0
            while lane < len(lanes) and any(
                low - 8 < spans[other][1] and spans[other][0] < high + 8 for other in lanes[lane]
            ):
                lane += 1
            if lane == len(lanes):
                lanes.append([])
            lanes[lane].append(number)
            chosen[number] = lane
        return chosen


def _station_width(stations: Iterable[Station]) -> int:
    names = max(width_of(each.name, NAME) for each in stations) + 24
    badges = max(room_for_badge(each.mark) for each in stations)
    even = min(max(names, badges, _NARROWEST), _WIDEST)
    return even + even % 2


def _height(station: Station) -> int:
    if station.is_end:
        return END_HEIGHT
    return 42 if station.note else 32


def _kind(station: Station) -> str:
    if station.is_end:
        return "end"
    return "role" if station.is_reached else "role unreached"
