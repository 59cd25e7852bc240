"""A plan in DOT, the language of Graphviz."""

from collections.abc import Iterator, Mapping, Sequence

from uwf_git.engine.picture.net import Group, Member, NetEdge, NetNode, make_net
from uwf_git.engine.picture.plan import MarkState, Plan
from uwf_git.engine.picture.words import tell

_SHAPES: Mapping[str, str] = {
    "role": "shape=box style=rounded",
    "end": "shape=box style=rounded",
    "workflow": "shape=box peripheries=2",
    "choice": "shape=diamond",
    "fork": "shape=point width=0.12",
}
COLOURS: Mapping[MarkState, str] = {
    "done": "#1a7f37",
    "now": "#0969da",
    "waits": "#9a6700",
    "failed": "#cf222e",
    "paused": "#57606a",
    "stopped": "#cf222e",
}
"""The colour of each state."""


def render_dot(plan: Plan) -> str:
    """Return *plan* as a directed graph; its labels are plain text."""
    net = make_net(plan)
    lines = [
        f"digraph {_quote([plan.title])} {{",
        f"  tooltip={_quote([tell(plan)])}",
        '  node [fontname="sans-serif" fontsize=11]',
        '  edge [fontname="monospace" fontsize=9]',
        *_members(net.members, "  "),
        *(f"  {_edge(edge)}" for edge in net.edges),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _members(members: Sequence[Member], indent: str) -> Iterator[str]:
    for member in members:
        if isinstance(member, Group):
            yield f"{indent}subgraph cluster_{member.name} {{"
            colour = COLOURS[member.state] if member.state else "#818b98"
            yield f'{indent}  label={_quote(member.lines)} color="{colour}"'
            yield f'{indent}  labeljust=l style=rounded fontname="sans-serif" fontsize=10'
            yield from _members(member.members, indent + "  ")
            yield f"{indent}}}"
        else:
            yield f"{indent}{_node(member)}"


def _node(node: NetNode) -> str:
    parts = [f"label={_quote(node.lines)}", _SHAPES[node.shape]]
    if node.state:
        parts.append(f'color="{COLOURS[node.state]}" penwidth=2')
    if not node.is_reached:
        parts.append('fontcolor="#818b98" color="#818b98"')
    return f"{node.name} [{' '.join(parts)}]"


def _edge(edge: NetEdge) -> str:
    parts = []
    if edge.lines:
        parts.append("label=" + _quote(edge.lines, end="\\l"))
    if edge.is_back:
        parts.append('style=dashed color="#8250df"')
    told = f" [{' '.join(parts)}]" if parts else ""
    return f"{edge.source} -> {edge.target}{told}"


def _quote(lines: Sequence[str], end: str = "") -> str:
    r"""Return *lines* as one quoted text: nothing in it is an escape, an entity or HTML.

    *end* ends each line: ``\l`` sets them to the left.
    """
    escaped = [
        line.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') for line in lines
    ]
    told = "".join(line + end for line in escaped) if end else "\\n".join(escaped)
    return f'"{told}"'
