"""A plan as plain text: an outline with the ways written beside it, of any width."""

from collections.abc import Iterator, Sequence

from uwf_git.engine.picture.labels import columns, cut, wrap
from uwf_git.engine.picture.plan import Block, FlowPlan, GraphPlan, Plan, Station, Way

_LEAST = 30
_SERIAL = ("├─ ", "└─ ", "│  ")
_BESIDE = ("╠═ ", "╚═ ", "║  ")
"""How branches that run beside each other begin, the last of them, and what goes on below."""


def render_outline(plan: Plan, width: int) -> str:
    """Return *plan* as text of at most *width* columns, but at least 30 for what is deep inside."""
    width = max(width, _LEAST)
    lines = [*wrap(plan.title, width), *(wrap(plan.about, width) if plan.about else ()), ""]
    lines += _graph(plan, width) if isinstance(plan, GraphPlan) else _flow(plan, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _graph(plan: GraphPlan, width: int) -> Iterator[str]:
    for number, station in enumerate(plan.stations):
        yield from _head("", "", station._replace(note=_told(station)), width)
        ways = [way for way in plan.ways if way.source == number]
        goes_down = any(way.target == number + 1 for way in ways)
        told = [line for way in ways for line in _tell_way(way, plan.stations[way.target].name)]
        for place, line in enumerate(sorted(told, key=_number)):
            mark = "└─ " if place == len(told) - 1 and not goes_down else "├─ "
            guide = "   " if mark.startswith("└") else "│  "
            first, *others = wrap(line, width - 3, "   ")
            yield mark + first
            yield from (guide + each for each in others)
        if number + 1 < len(plan.stations):
            yield "│" if goes_down else ""


def _told(station: Station) -> str:
    return station.note if station.is_reached else f"(nothing leads here) {station.note}"


def _tell_way(way: Way, target: str) -> list[str]:
    """Return the lines of *way*; none if it is the only one, and leads to the next station."""
    sign = "↺" if way.target <= way.source else "↓" if way.target == way.source + 1 else "→"
    if not way.labels:
        return [] if sign == "↓" else [f"{sign} {target}"]
    return [f"{label}  {sign} {target}" for label in way.labels]


def _number(line: str) -> int:
    number = line.partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _flow(plan: FlowPlan, width: int) -> Iterator[str]:
    start, end = plan.marks
    yield from _head("", "", Station("start", "", start), width)
    for block in plan.blocks:
        yield from _block(block, _SERIAL[0], _SERIAL[2], width)
    yield from _head("", "", Station("end", "", end), width)


def _block(block: Block, first: str, guide: str, width: int) -> Iterator[str]:
    """Yield the lines of *block*: the first begins with *first*, the others with *guide*."""
    if not block.branches:
        yield from _head(first, guide, block, width)
        return
    beside = block.kind == "parallel"
    yield from _head(first, guide, block._replace(note=""), width)
    room = max(width - len(guide) - 3, _LEAST)
    for line in wrap(block.note, room) if block.note else ():
        yield f"{guide}│  {line}"
    signs = _BESIDE if beside else _SERIAL
    branches = [branch for branch in block.branches if branch.blocks]
    if block.kind != "conditional":
        blocks = [inner for branch in branches for inner in branch.blocks]
        yield from _blocks(blocks, guide, signs, width)
        return
    for branch in branches:
        is_last = branch is branches[-1]
        yield f"{guide}{signs[is_last]}{branch.label}"
        below = guide + ("   " if is_last else signs[2])
        yield from _blocks(branch.blocks, below, signs, width)


def _blocks(
    blocks: Sequence[Block], guide: str, signs: tuple[str, str, str], width: int
) -> Iterator[str]:
    for number, block in enumerate(blocks):
        is_last = number == len(blocks) - 1
        below = guide + ("   " if is_last else signs[2])
        yield from _block(block, guide + signs[is_last], below, width)


def _head(first: str, guide: str, what: Station | Block, width: int) -> Iterator[str]:
    """Yield the name of *what* with its mark, wrapped, and its note in what remains of the line."""
    name, mark, note = what.name, what.mark, what.note
    room = max(width - len(guide), _LEAST)
    line, *others = wrap(name if mark is None else f"{name}  [{mark.badge}]", room, "  ")
    if mark is not None and not others and columns(line) < room:
        # `wrap` knows no two blanks.
        line = f"{name}  [{mark.badge}]"
    left = room - columns(line) - 2
    if note and not others and left >= _LEAST // 2:
        line += f"  {cut(note, left, columns)}"
    yield first + line
    yield from (guide + each for each in others)
