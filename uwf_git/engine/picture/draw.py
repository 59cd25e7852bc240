"""From what is to be drawn to the text of a picture, in one of three forms."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, Union
from xml.sax.saxutils import escape, quoteattr

from uwf_git.engine.picture.labels import (
    ALL_STYLES,
    Box,
    Drawing,
    Line,
    Point,
    Style,
    Text,
    columns,
    cut,
    is_sure,
    wrap,
)
from uwf_git.engine.picture.layout import lay_out_flow, lay_out_graph
from uwf_git.engine.picture.plan import (
    Block,
    FlowPlan,
    GraphPlan,
    Mark,
    MarkState,
    Plan,
    Station,
    Subject,
    Way,
    plan_flow,
    plan_graph,
)
from uwf_git.model.flow import Flow

# A plan as plain text: an outline with the ways written beside it, of any width.

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


# A plan in Mermaid, which GitHub and GitLab draw in Markdown.

# A plan as nodes, edges and groups: for the forms that other programs lay out.

Shape = Literal["role", "end", "workflow", "choice", "fork"]

_COLUMNS = 40


class NetNode(NamedTuple):
    """A role, an end, or a point where ways part or meet."""

    name: str
    shape: Shape
    lines: tuple[str, ...]
    state: MarkState | None = None
    is_reached: bool = True


class NetEdge(NamedTuple):
    source: str
    target: str
    lines: tuple[str, ...] = ()
    is_back: bool = False


class Group(NamedTuple):
    """A container: a frame around what is in it."""

    name: str
    lines: tuple[str, ...]
    members: tuple[Union[NetNode, "Group"], ...]
    state: MarkState | None = None


Member: TypeAlias = NetNode | Group


class Net(NamedTuple):
    """The whole net; each name is one word of ASCII letters and digits."""

    members: tuple[Member, ...]
    edges: tuple[NetEdge, ...]


class _Part(NamedTuple):
    """What a block became, where it is entered, and from which nodes a way leads on."""

    member: Member
    entry: str
    exits: tuple[tuple[str, tuple[str, ...]], ...]
    """Nodes, each with the label of the way that leads on."""


def make_net(plan: Plan) -> Net:
    if isinstance(plan, GraphPlan):
        return _net_of_graph(plan)
    return _Weaver().weave(plan)


def walk_nodes(members: Sequence[Member]) -> Iterator[NetNode]:
    """Yield the nodes in *members* and in their groups."""
    for member in members:
        if isinstance(member, Group):
            yield from walk_nodes(member.members)
        else:
            yield member


def walk_groups(members: Sequence[Member]) -> Iterator[Group]:
    """Yield the groups in *members* and in their groups."""
    for member in members:
        if isinstance(member, Group):
            yield member
            yield from walk_groups(member.members)


def _net_of_graph(plan: GraphPlan) -> Net:
    nodes = tuple(
        NetNode(
            f"n{number}",
            "end" if station.is_end else "role",
            _lines(station.name, station.mark),
            station.mark.state if station.mark else None,
            station.is_reached,
        )
        for number, station in enumerate(plan.stations)
    )
    edges = tuple(
        NetEdge(
            f"n{way.source}",
            f"n{way.target}",
            tuple(line for label in way.labels for line in wrap(label, _COLUMNS)),
            way.target <= way.source,
        )
        for way in plan.ways
    )
    return Net(nodes, edges)


def _lines(name: str, mark: Mark | None) -> tuple[str, ...]:
    return (*wrap(name, _COLUMNS), *([] if mark is None else [mark.badge]))


def _state(mark: Mark | None) -> MarkState | None:
    return None if mark is None else mark.state


class _Weaver:
    def __init__(self) -> None:
        self._count = 0
        self._edges: list[NetEdge] = []

    def weave(self, plan: FlowPlan) -> Net:
        start = self._node("end", "start", plan.marks[0])
        end = self._node("end", "end", plan.marks[1])
        parts = [_Part(start, start.name, ((start.name, ()),)), *map(self._part, plan.blocks)]
        self._chain([*parts, _Part(end, end.name, ())])
        return Net((*(part.member for part in parts), end), tuple(self._edges))

    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _node(self, shape: Shape, text: str, mark: Mark | None = None) -> NetNode:
        return NetNode(self._name("n"), shape, _lines(text, mark), _state(mark))

    def _part(self, block: Block) -> _Part:
        if not block.branches:
            shape: Shape = "workflow" if block.kind == "workflow" else "role"
            node = self._node(shape, block.name, block.mark)
            return _Part(node, node.name, ((node.name, ()),))
        if block.kind == "parallel":
            return self._parallel(block)
        if block.kind == "conditional":
            return self._conditional(block)
        group = self._name("g")
        parts = self._chain([self._part(each) for each in block.branches[0].blocks])
        if block.kind == "loop":
            self._connect(parts[-1], parts[0].entry, is_back=True)
        return _Part(self._group(group, block, parts), parts[0].entry, parts[-1].exits)

    def _parallel(self, block: Block) -> _Part:
        group, fork, join = self._name("g"), self._node("fork", ""), self._node("fork", "")
        parts = []
        for branch in block.branches:
            inner = self._chain([self._part(each) for each in branch.blocks])
            self._edges.append(NetEdge(fork.name, inner[0].entry))
            self._connect(inner[-1], join.name)
            parts += inner
        whole = self._group(group, block, parts, fork, join)
        return _Part(whole, fork.name, ((join.name, ()),))

    def _conditional(self, block: Block) -> _Part:
        group, choice = self._name("g"), self._node("choice", block.note)
        parts: list[_Part] = []
        exits: list[tuple[str, tuple[str, ...]]] = []
        for branch in block.branches:
            if not branch.blocks:
                exits.append((choice.name, (branch.label,)))
                continue
            inner = self._chain([self._part(each) for each in branch.blocks])
            self._edges.append(NetEdge(choice.name, inner[0].entry, (branch.label,)))
            parts += inner
            exits += inner[-1].exits
        whole = self._group(group, block._replace(note=""), parts, choice)
        return _Part(whole, choice.name, tuple(exits))

    def _group(self, name: str, block: Block, parts: Sequence[_Part], *nodes: NetNode) -> Group:
        lines = [
            *_lines(block.name, block.mark),
            *(wrap(block.note, _COLUMNS) if block.note else ()),
        ]
        members = (*nodes, *(part.member for part in parts))
        return Group(name, tuple(lines), members, _state(block.mark))

    def _chain(self, parts: list[_Part]) -> list[_Part]:
        for before, after in itertools.pairwise(parts):
            self._connect(before, after.entry)
        return parts

    def _connect(self, before: _Part, target: str, *, is_back: bool = False) -> None:
        for source, lines in before.exits:
            self._edges.append(NetEdge(source, target, lines, is_back))


_SHAPES = {
    "role": ("[", "]"),
    "end": ("([", "])"),
    "workflow": ("[[", "]]"),
    "choice": ("{", "}"),
    "fork": ("((", "))"),
}

_COLOURS: Mapping[MarkState, str] = {
    "done": "#1a7f37",
    "now": "#0969da",
    "waits": "#9a6700",
    "failed": "#cf222e",
    "paused": "#57606a",
    "stopped": "#cf222e",
}

# All else has a meaning in Mermaid, Markdown or HTML, or may have one in its next release.
_SPECIAL = re.compile(r"[^\w ,.:?!/()=…✓✗▶→“”·‖\u0080-\U0010ffff-]|_")


def render_mermaid(plan: Plan) -> str:
    net = make_net(plan)
    marked: list[Member] = [*walk_nodes(net.members), *walk_groups(net.members)]
    lines = [
        "flowchart TD",
        f"  %% {plan.title}",
        *_members(net.members, "  "),
        *(f"  {_edge(edge)}" for edge in net.edges),
    ]
    for state, colour in _COLOURS.items():
        names = ",".join(each.name for each in marked if each.state == state)
        if names:
            lines.append(f"  classDef {state} stroke:{colour},stroke-width:2px")
            lines.append(f"  class {names} {state}")
    unreached = ",".join(node.name for node in walk_nodes(net.members) if not node.is_reached)
    if unreached:
        lines.append("  classDef unreached stroke-dasharray:4 3,opacity:0.55")
        lines.append(f"  class {unreached} unreached")
    return "\n".join(lines) + "\n"


def _members(members: Sequence[Member], indent: str) -> Iterator[str]:
    for member in members:
        if isinstance(member, Group):
            yield f"{indent}subgraph {member.name}[{_quote(member.lines)}]"
            yield from _members(member.members, indent + "  ")
            yield f"{indent}end"
        else:
            yield f"{indent}{_node(member)}"


def _node(node: NetNode) -> str:
    opening, closing = _SHAPES[node.shape]
    return f"{node.name}{opening}{_quote(node.lines)}{closing}"


def _edge(edge: NetEdge) -> str:
    arrow = "-.->" if edge.is_back else "-->"
    label = f"|{_quote(edge.lines)}|" if edge.lines else ""
    return f"{edge.source} {arrow}{label} {edge.target}"


def _quote(lines: Sequence[str]) -> str:
    told = "<br/>".join(_SPECIAL.sub(lambda match: f"#{ord(match[0])};", line) for line in lines)
    return f'"{told or " "}"'


# A laid out picture as SVG, light and dark.

# The colours and fonts of pictures, light and dark, as one style sheet.

_FACES = {
    "bold": 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
    "mono": 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace',
}
_LIGHT = {
    "ground": "#ffffff", "text": "#1c2128", "soft": "#57606a", "line": "#818b98",
    "fill": "#f6f8fa", "edge": "#d0d7de", "end": "#1f2328", "on-end": "#ffffff",
    "loop": "#8250df", "fork": "#0969da", "choice": "#9a6700", "on-badge": "#ffffff",
    "done": "#1a7f37", "now": "#0969da", "waits": "#9a6700", "failed": "#cf222e",
    "paused": "#57606a", "stopped": "#cf222e",
}  # fmt: skip
_DARK = {
    "ground": "#0d1117", "text": "#e6edf3", "soft": "#9da7b3", "line": "#7d8590",
    "fill": "#161b22", "edge": "#3d444d", "end": "#e6edf3", "on-end": "#0d1117",
    "loop": "#a371f7", "fork": "#4493f8", "choice": "#d29922", "on-badge": "#0d1117",
    "done": "#3fb950", "now": "#4493f8", "waits": "#d29922", "failed": "#f85149",
    "paused": "#9da7b3", "stopped": "#f85149",
}  # fmt: skip
_STATES = ("done", "now", "waits", "failed", "paused", "stopped")


def _face(style: Style) -> str:
    weight = "600 " if style.face == "bold" else ""
    family = _FACES["mono" if style.face == "mono" else "bold"]
    return f".uwf-picture .{style.name} {{ font: {weight}{style.size}px {family}; }}\n"


def _colours(of: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield selectors with their colours."""
    yield ".ground", f"fill: {of['ground']}"
    yield "text", f"fill: {of['text']}"
    yield ".note, .uwf-picture .label", f"fill: {of['soft']}"
    yield "rect", f"stroke: {of['edge']}"
    yield ".role, .uwf-picture .agent, .uwf-picture .workflow", f"fill: {of['fill']}"
    yield "text.role, .uwf-picture text.agent, .uwf-picture text.workflow", f"fill: {of['text']}"
    yield "text.note", f"fill: {of['soft']}"
    yield "rect.end", f"fill: {of['end']}; stroke: {of['end']}"
    yield "text.end", f"fill: {of['on-end']}"
    yield ".bar", f"fill: {of['line']}; stroke: none"
    yield ".way", f"stroke: {of['line']}"
    yield ".head", f"fill: {of['line']}; stroke: none"
    yield ".back", f"stroke: {of['loop']}"
    yield ".head.back", f"fill: {of['loop']}; stroke: none"
    for kind, colour in (
        ("loop", "loop"),
        ("parallel", "fork"),
        ("map", "fork"),
        ("conditional", "choice"),
    ):
        yield f"rect.{kind}", f"stroke: {of[colour]}"
        yield f"text.{kind}", f"fill: {of[colour]}"
    yield "rect.map", f"fill: {of['ground']}"
    yield "text.sequential", f"fill: {of['soft']}"
    for state in _STATES:
        yield f"rect.is-{state}", f"stroke: {of[state]}"
        yield f"rect.badge.is-{state}", f"fill: {of[state]}; stroke: none"
        yield f"rect.end.is-{state}", f"fill: {of[state]}"
    yield "text.badge", f"fill: {of['on-badge']}"


def _sheet() -> str:
    shapes = (
        ".uwf-picture rect { fill: none; }\n"
        ".uwf-picture path { fill: none; stroke-width: 1.5; }\n"
        ".uwf-picture .ground { stroke: none; }\n"
        ".uwf-picture .back { stroke-dasharray: 5 4; }\n"
        ".uwf-picture .sequential { stroke-dasharray: 2 3; }\n"
        ".uwf-picture .unreached { stroke-dasharray: 4 3; opacity: 0.55; }\n"
        ".uwf-picture [class*=is-] { stroke-width: 2; }\n"
    )
    light = "".join(f".uwf-picture {where} {{ {what}; }}\n" for where, what in _colours(_LIGHT))
    dark = "".join(f".uwf-picture {where} {{ {what}; }}\n" for where, what in _colours(_DARK))
    faces = "".join(map(_face, ALL_STYLES))
    return f"{faces}{shapes}{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"


STYLE_SHEET = _sheet()
"""The colours and fonts of all pictures, for a page that shows them."""


# A drawing as SVG: colours are classes, light and dark, and nothing has a style of its own.
#
# A page with a strict policy shows it as it is, with ``STYLE_SHEET`` among its own; only a file
# that stands alone has the sheet in it.

_CORNER = 6


def render_svg(drawing: Drawing, *, stands_alone: bool = True) -> str:
    """Return *drawing* as an SVG element; a whole file, with its colours, if it *stands alone*."""
    size = f'width="{drawing.width}" height="{drawing.height}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="uwf-picture" role="img" {size} '
        f'viewBox="0 0 {drawing.width} {drawing.height}">'
    )
    parts = [
        head,
        f"<title>{escape(drawing.title)}</title>",
        f"<desc>{escape(drawing.about)}</desc>",
    ]
    if stands_alone:
        parts.append(f"<style>\n{STYLE_SHEET}</style>")
    parts.append(f'<rect class="ground" {size}/>')
    parts += map(_box, drawing.boxes)
    for line in drawing.lines:
        parts += _line(line)
    parts += map(_text, drawing.texts)
    for box, text in drawing.badges:
        parts += (_box(box), _text(text))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(box: Box) -> str:
    radius = min(box.radius, box.height // 2)
    return (
        f'<rect class="{box.kind}" x="{box.x}" y="{box.y}" width="{box.width}" '
        f'height="{box.height}" rx="{radius}"/>'
    )


def _line(line: Line) -> Iterator[str]:
    path = "".join(map(_path, line.parts))
    yield f'<path class="{line.kind}" d="{path}"/>'
    if line.has_arrow:
        (x0, y0), (x, y) = line.parts[-1][-2:]
        across, down = _sign(x - x0), _sign(y - y0)
        back_x, back_y = x - 9 * across, y - 9 * down
        side_x, side_y = 5 * abs(down), 5 * abs(across)
        yield (
            f'<path class="head {line.kind}" d="M{x} {y}L{back_x - side_x} {back_y - side_y}'
            f'L{back_x + side_x} {back_y + side_y}Z"/>'
        )


def _path(points: tuple[Point, ...]) -> str:
    x, y = points[0]
    told = f"M{x} {y}"
    for before, at, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _towards(at, before), _towards(at, after)
        told += f"L{near[0]} {near[1]}Q{at[0]} {at[1]} {far[0]} {far[1]}"
    x, y = points[-1]
    return f"{told}L{x} {y}"


def _towards(corner: Point, other: Point) -> Point:
    across, down = other[0] - corner[0], other[1] - corner[1]
    by = min(_CORNER, (abs(across) + abs(down)) // 2)
    return corner[0] + _sign(across) * by, corner[1] + _sign(down) * by


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _text(text: Text) -> str:
    classes = " ".join(filter(None, (text.style.name, text.kind)))
    middle = ' text-anchor="middle"' if text.anchor == "middle" else ""
    # A script or sign that fonts draw as wide as they like is set as wide as was guessed.
    length = (
        "" if is_sure(text.text) else f' textLength="{text.width}" lengthAdjust="spacingAndGlyphs"'
    )
    whole = f"<title>{escape(text.whole)}</title>" if text.whole else ""
    return (
        f'<text class={quoteattr(classes)} x="{text.x}" y="{text.y}"{middle}{length}>'
        f"{whole}{escape(text.text)}</text>"
    )


DEFAULT_WIDTH = 80


def make_plan(subject: Subject, *, is_whole: bool = False) -> Plan:
    """Return what the picture of *subject* shows; if it *is whole*, no branches are folded."""
    if isinstance(subject.moves, Flow):
        return plan_flow(subject, subject.moves, is_whole=is_whole)
    return plan_graph(subject, subject.moves)


def lay_out(plan: Plan) -> Drawing:
    return lay_out_graph(plan) if isinstance(plan, GraphPlan) else lay_out_flow(plan)


def draw(subject: Subject, form: str, *, width: int = DEFAULT_WIDTH, is_whole: bool = False) -> str:
    """Return the picture of *subject* in a *form* of ``FORMS``; *width* is for text, in columns."""
    plan = make_plan(subject, is_whole=is_whole)
    return render_outline(plan, width) if form == "text" else _RENDERERS[form](plan)


_RENDERERS: Mapping[str, Callable[[Plan], str]] = {
    "svg": lambda plan: render_svg(lay_out(plan)),
    "mermaid": render_mermaid,
}

FORMS: tuple[str, ...] = ("text", *_RENDERERS)
