"""Whether a workflow is another workflow with something appended: FORMAT.md, "What events do"."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.model.flow import Flow, parent
from uwf_git.model.workflow import Graph

_GROWING = ("roles", "agentOverrides")
_APART = {*_GROWING, "flow", "moderator"}


class Rules(NamedTuple):
    payload: Mapping[str, Any]

    flow: Flow | None
    graph: Graph | None


def find_other_change(old: Rules, new: Rules) -> str | None:
    """Return what *new* has that no append to *old* makes; None if an append may have made it.

    Roles and agents may be replaced by others of the same name; new ways of a graph come before the
    older ways of their position, and an unconditional new way hides these.
    """
    for name in sorted({*old.payload, *new.payload} - _APART):
        if old.payload.get(name) != new.payload.get(name):
            return f"has another {name}"
    for name in _GROWING:
        for role in old.payload.get(name, ()):
            if role not in new.payload.get(name, ()):
                return f"lacks {role} in {name}"
    if (old.flow is None, old.graph is None) != (new.flow is None, new.graph is None):
        return "is of another kind"
    if old.flow is not None and new.flow is not None:
        return _find_in_flow(old.flow, new.flow)
    return _find_in_graph(old.graph or {}, new.graph or {})


def _find_in_flow(old: Flow, new: Flow) -> str | None:
    if new.language != old.language:
        return f"is in {new.language}"
    for place, node in old.nodes.items():
        if new.nodes.get(place) != node:
            return f"differs at {place}"
    tops = [place for place in new.nodes if place not in old.nodes and _is_top(old, place)]
    if len({parent(place) for place in tops}) > 1:
        return f"has new nodes in several lists: {', '.join(tops[:4])}"
    for place in tops:
        if place.rpartition("/")[2].startswith("e"):
            return f"has a new node in an else: {place}"
    return None


def _is_top(old: Flow, place: str) -> bool:
    up = parent(place)
    return up is None or up in old.nodes


def _find_in_graph(old: Graph, new: Graph) -> str | None:
    for source, ways in old.items():
        found = new.get(source, ())
        if all(way.condition is not None for way in found) and not set(ways) <= set(found):
            return f"lacks ways from {source}"
    return None
