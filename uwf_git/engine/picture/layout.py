"""The layouts of pictures: of flows, boxes in boxes; of graphs, a spine with lanes."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from uwf_git.engine.picture.labels import (
    END_HEIGHT,
    HEADING,
    LABEL,
    MARGIN,
    NAME,
    NOTE,
    Box,
    Drawing,
    Line,
    Piece,
    Point,
    Text,
    end_text,
    end_width,
    fit,
    make_badge,
    make_label,
    make_texts,
    mark_classes,
    room_for_badge,
    tell_flow,
    tell_graph,
    width_of,
)
from uwf_git.engine.picture.plan import Block, Branch, FlowPlan, GraphPlan, Mark

# The layout of flows: boxes in boxes that know their width, height and the axis of their line.

_NARROWEST, _WIDEST = 150, 240
_WIDEST_HEADING = 480
_GAP = 28
_PAD = 14
_COLUMN_GAP = 18
_STUB = 12
_WAY_BACK = 20
"""The room that a loop's way back takes, on the left and at the bottom."""

_WIDEST_ROW = 1_000
"""The width of branches beside each other; more of them stand in a row below."""

_SHADOW = 5
_EMPTY = 90
"""The width of a branch without blocks: it has only a label."""


def lay_out_flow(plan: FlowPlan) -> Drawing:
    start, end = plan.marks
    pieces = [_end("start", start), *map(_block, plan.blocks), _end("end", end)]
    piece = _stack(pieces).moved(MARGIN, MARGIN)
    # A badge may stick out on the right, by less than the margin.
    width, height = piece.width + 2 * MARGIN, piece.height + 2 * MARGIN
    return piece.drawn(plan.title, tell_flow(plan), width, height)


def _end(name: str, mark: Mark | None) -> Piece:
    text = end_text(name, mark)
    width = end_width(text)
    box = Box(0, 0, width, END_HEIGHT, mark_classes("end", mark), name, END_HEIGHT // 2)
    return Piece(width, END_HEIGHT, width // 2, (box,), texts=make_texts(box, text))


def _block(block: Block) -> Piece:
    if not block.branches:
        return _agent(block)
    if block.kind == "loop":
        return _loop(block)
    if block.kind in {"parallel", "conditional"}:
        return _fork(block)
    return _frame(block, _column(block.branches[0]), bottom=_PAD)


def _agent(block: Block) -> Piece:
    wanted = max(width_of(block.name, NAME), width_of(block.note, NOTE)) + 28
    width = min(max(wanted, _NARROWEST, room_for_badge(block.mark)), _WIDEST)
    width += width % 2
    height = 42 if block.note else 32
    box = Box(0, 0, width, height, mark_classes(block.kind, block.mark), block.place)
    boxes = [box]
    if block.kind == "workflow":
        boxes.append(Box(5, 0, width - 10, height, box.kind, block.place, 0))
    badges = () if block.mark is None else (make_badge(block.mark, box, width // 2),)
    texts = make_texts(box, block.name, block.note)
    return Piece(width, height, width // 2, tuple(boxes), texts=texts, badges=badges)


def _stack(pieces: Sequence[Piece]) -> Piece:
    """Put *pieces* below one another, with an arrow from each to the next."""
    axis = max(piece.axis for piece in pieces)
    beyond = max(piece.width - piece.axis for piece in pieces)
    y, placed, lines = 0, [], []
    for number, piece in enumerate(pieces):
        if number:
            lines.append(Line((((axis, y), (axis, y + _GAP)),), "way"))
            y += _GAP
        placed.append(piece.moved(axis - piece.axis, y))
        y += piece.height
    return Piece(axis + beyond, y, axis, lines=tuple(lines)).holding(*placed)


def _frame(block: Block, inner: Piece, *, bottom: int, left: int = _PAD) -> Piece:
    shown = fit(block.name, _WIDEST_HEADING, HEADING)
    condition = make_label([block.note] if block.note else [], hanging=False)
    # The badge of the first block stands below the last line.
    top = 36 + condition.height + (2 if condition.lines else 0)
    needed = max(width_of(shown, HEADING), condition.width) + 2 * _PAD
    content = left + inner.width + _PAD
    width = max(needed, content, min(room_for_badge(block.mark), _WIDEST))
    offset = left + (width - content) // 2
    axis, height = offset + inner.axis, top + inner.height + bottom
    kind = mark_classes(block.kind, block.mark)
    box = Box(0, 0, width, height, kind, block.place, 8)
    # The items of a map, one behind the other.
    boxes = (Box(_SHADOW, _SHADOW, width, height, kind, block.place, 8), box)
    shadow = _SHADOW if block.kind == "map" else 0
    whole = "" if shown == block.name else block.name
    heading = Text(_PAD, 20, shown, HEADING, block.place, "start", whole, block.kind)
    return Piece(
        width + shadow,
        height + shadow,
        axis,
        boxes if shadow else (box,),
        texts=(heading, *condition.place(_PAD, 26, block.place)),
        badges=() if block.mark is None else (make_badge(block.mark, box, axis),),
    ).holding(inner.moved(offset, top))


def _loop(block: Block) -> Piece:
    """Draw a loop: from below its last block a way leads back to its first."""
    pieces = [_block(each) for each in block.branches[0].blocks]
    piece, first = _stack(pieces), pieces[0]
    low, high = piece.height + _WAY_BACK // 2, min(18, first.height // 2)
    back = (
        (piece.axis, piece.height),
        (piece.axis, low),
        (-_WAY_BACK, low),
        (-_WAY_BACK, high),
        (piece.axis - first.axis, high),
    )
    inner = piece.holding(Piece(0, 0, 0, lines=(Line((back,), "way back"),)))
    return _frame(block, inner, bottom=_WAY_BACK + 4, left=_PAD + _WAY_BACK)


def _fork(block: Block) -> Piece:
    """Draw branches beside each other, between two bars."""
    # All branches run, or one of them.
    bar, over, gap = (4, 10, 20) if block.kind == "parallel" else (2, 1, 30)
    rows = list(_break([(branch, _column(branch)) for branch in block.branches]))
    # Beside several rows one way leads down to each of them, another from each to the end.
    beside = _COLUMN_GAP if len(rows) > 1 else 0
    y, right, axes, bounds = _STUB, 0, [], []
    placed, lines, texts = [], [], []
    for row in rows:
        top = y + bar + gap
        low = top + max(column.height for _, column in row) + (_STUB + 4)
        x = beside
        for branch, column in row:
            at = x + column.axis
            axes.append(at)
            placed.append(column.moved(x, top))
            if branch.blocks:
                lines.append(Line((((at, top - gap), (at, top)),), "way"))
            start = top + column.height if branch.blocks else top - gap
            lines.append(Line((((at, start), (at, low)),), "way", has_arrow=False))
            texts.append(Text(at + 8, y + bar + 13, branch.label, LABEL, block.place))
            x += column.width + _COLUMN_GAP
        bounds.append((y, low))
        y, right = low + bar + _STUB, max(right, x - _COLUMN_GAP)
    first, last, width = min(axes) - over, max(axes) + over, right + beside
    axis = (first + last) // 2
    lines.insert(0, Line((((axis, 0), (axis, _STUB)),), "way", has_arrow=False))
    lines.append(Line((((axis, low + bar), (axis, low + bar + _PAD)),), "way", has_arrow=False))
    if beside:
        tops, lows = zip(*bounds, strict=True)
        lines += [_beside(tops, first, 0), _beside(lows, last, width)]
    bars = [
        Box(first, at, last - first, bar, "bar", block.place, 0) for bound in bounds for at in bound
    ]
    shown = tuple(text for text in texts if text.text)
    inner = Piece(width, low + bar + _PAD, axis, tuple(bars), tuple(lines), shown)
    return _frame(block, inner.holding(*placed), bottom=0)


def _beside(bars: Sequence[int], end: int, x: int) -> Line:
    """Return the way at *x* that ties the ends of *bars* of several rows together."""
    middle = [y + 2 for y in bars]
    around = ((end, middle[0]), (x, middle[0]), (x, middle[-1]), (end, middle[-1]))
    return Line((around, *(((x, y), (end, y)) for y in middle[1:-1])), "way", has_arrow=False)


def _break(columns: Sequence[tuple[Branch, Piece]]) -> Iterator[list[tuple[Branch, Piece]]]:
    """Yield *columns* in rows that are not wider than ``_WIDEST_ROW``, if a column is not."""
    row: list[tuple[Branch, Piece]] = []
    width = 0
    for branch, column in columns:
        if row and width + column.width > _WIDEST_ROW:
            yield row
            row, width = [], 0
        row.append((branch, column))
        width += column.width + _COLUMN_GAP
    yield row


def _column(branch: Branch) -> Piece:
    if not branch.blocks:
        return Piece(_EMPTY, 0, _EMPTY // 2)
    return _stack([_block(each) for each in branch.blocks])


# The layout of graphs: a spine with lanes.
#
# The stations stand in a column. The way to the next station goes straight down; a way further down
# is a lane on the right, a way back a lane on the left, the shortest nearest to the spine. Each way
# meets a station at a height of its own, so no two ways run on the same line.

_NARROWEST_STATION, _WIDEST_STATION = 200, 280
_TO_LABEL = 14
"""From a station's edge to its label."""

_ENTRY = 12
"""The height that a way needs where it comes in."""

_LANE = 12
_AROUND_LABEL = 5


_Side: TypeAlias = tuple[list[int], list[int]]
"""The ways that leave a station on one side, and those that enter it."""


def lay_out_graph(plan: GraphPlan) -> Drawing:
    return _Spine(plan).draw()


class _Spine:
    """One layout; the middle of the spine is at x = 0 until all is drawn."""

    def __init__(self, plan: GraphPlan) -> None:
        self._plan = plan
        self._labels = [make_label(way.labels) for way in plan.ways]
        names = max(width_of(each.name, NAME) for each in plan.stations) + 24
        badges = max(room_for_badge(each.mark) for each in plan.stations)
        wide = min(max(names, badges, _NARROWEST_STATION), _WIDEST_STATION)
        self._wide = wide + wide % 2
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
            wide, tall, radius = self._wide, 42 if station.note else 32, 6
            kind = "role" if station.is_reached else "role unreached"
            if station.is_end:
                wide = end_width(end_text(station.name, station.mark))
                tall, radius, kind = END_HEIGHT, END_HEIGHT // 2, "end"
            tall = max(tall, *(self._needed(side) + 16 for side in sides))
            kind = mark_classes(kind, station.mark)
            box = Box(-(wide // 2), y, wide, tall, kind, str(number), radius)
            self._boxes.append(box)
            self._meet(box, sides[0], exits_first=False)
            self._meet(box, sides[1], exits_first=True)
            label = labels.get(number)
            y += tall + _GAP + (label.height if label is not None else 0)

    def _side(self, station: int, numbers: Sequence[int]) -> _Side:
        """Return the ways of *numbers* at *station*, in the order in which fewest cross."""
        ways = self._plan.ways
        exits = [n for n in numbers if ways[n].source == station]
        entries = [n for n in numbers if ways[n].target == station]
        exits.sort(key=lambda n: (ways[n].target == station, -ways[n].target))
        entries.sort(key=lambda n: (ways[n].source != station, -ways[n].source))
        return exits, entries

    def _needed(self, side: _Side) -> int:
        exits, entries = side
        return sum(map(self._slot, exits)) + _ENTRY * len(entries)

    def _slot(self, number: int) -> int:
        return max(self._labels[number].height + 6, _ENTRY)

    def _meet(self, box: Box, side: _Side, *, exits_first: bool) -> None:
        y = box.y + (box.height - self._needed(side)) // 2
        for is_exit in (True, False) if exits_first else (False, True):
            for number in side[not is_exit]:
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
        starts = {n: self._edge(self._plan.ways[n].source) + _TO_LABEL for n in numbers}
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
            placed = tuple(tuple((sign * px, py) for px, py in part) for part in parts)
            lines.append(Line(placed, "way" if sign > 0 else "way back"))
            left = starts[number] if sign > 0 else -starts[number] - label.width
            texts += label.place(left, y - label.height // 2, f"way {number}")
        return lines, texts

    def _edge(self, station: int) -> int:
        return self._boxes[station].width // 2

    def _choose_lanes(self, numbers: Iterable[int]) -> dict[int, int]:
        """Give each way the nearest lane that is free along it, the shortest first."""
        spans = {n: sorted((self._exit_y[n], self._entry_y[n])) for n in numbers}
        chosen: dict[int, int] = {}
        for number in sorted(spans, key=lambda n: (spans[n][1] - spans[n][0], n)):
            low, high = spans[number][0] - 8, spans[number][1] + 8
            others = ((lane, *spans[other]) for other, lane in chosen.items())
            taken = {lane for lane, start, end in others if low < end and start < high}
            chosen[number] = next(lane for lane in itertools.count() if lane not in taken)
        return chosen
