"""A plan in Mermaid, which GitHub and GitLab draw in Markdown."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, Union

from uwf_git.engine.picture.labels import wrap
from uwf_git.engine.picture.plan import Block, FlowPlan, GraphPlan, Mark, MarkState, Plan

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
