"""The layout of flows: boxes in boxes that know their width, height and the axis of their line."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
    width_of,
)
from uwf_git.engine.picture.plan import Block, Branch, FlowPlan, Mark

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


class _Stack(NamedTuple):
    piece: Piece
    first_left: int
    """The left edge of the first block; it begins at y = 0."""

    first_height: int


def lay_out_flow(plan: FlowPlan) -> Drawing:
    start, end = plan.marks
    pieces = [_end("start", start), *map(_block, plan.blocks), _end("end", end)]
    piece = _stack(pieces).piece.moved(MARGIN, MARGIN)
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
    stack = _stack([_block(each) for each in block.branches[0].blocks])
    return _frame(block, stack.piece, bottom=_PAD)


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


def _stack(pieces: Sequence[Piece]) -> _Stack:
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
    whole = Piece(axis + beyond, y, axis, lines=tuple(lines)).holding(*placed)
    return _Stack(whole, axis - pieces[0].axis, pieces[0].height)


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
    stack = _stack([_block(each) for each in block.branches[0].blocks])
    piece = stack.piece
    low, high = piece.height + _WAY_BACK // 2, min(18, stack.first_height // 2)
    back = (
        (piece.axis, piece.height),
        (piece.axis, low),
        (-_WAY_BACK, low),
        (-_WAY_BACK, high),
        (stack.first_left, high),
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
                lines.append(
                    Line((((at, top + column.height), (at, low)),), "way", has_arrow=False)
                )
            else:
                lines.append(Line((((at, top - gap), (at, low)),), "way", has_arrow=False))
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
    inner = Piece(
        width,
        low + bar + _PAD,
        axis,
        tuple(bars),
        tuple(lines),
        tuple(text for text in texts if text.text),
    ).holding(*placed)
    return _frame(block, inner, bottom=0)


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
    return _stack([_block(each) for each in branch.blocks]).piece
