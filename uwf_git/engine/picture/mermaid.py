"""A plan in Mermaid, which GitHub and GitLab draw in Markdown."""

import re
from collections.abc import Iterator, Mapping, Sequence

from uwf_git.engine.picture.net import (
    Group,
    Member,
    NetEdge,
    NetNode,
    make_net,
    walk_groups,
    walk_nodes,
)
from uwf_git.engine.picture.plan import MarkState, Plan

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
    """Return *plan* as a Mermaid flowchart."""
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
