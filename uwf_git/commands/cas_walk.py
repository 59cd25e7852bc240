"""`json-cas walk`: everything that a node reaches.

Always true: each node is told once, where it is first met, nearest first; a node that is missing
or damaged is told so, and the walk goes on.
"""

from collections import deque
from typing import NamedTuple

from uwf_git.commands.cas_rows import NodeRow, build_row
from uwf_git.errors import StoreDamaged
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, parse_node_prefix
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import Store


class Reached(NamedTuple):
    """One node on a walk."""

    depth: int
    """How many references lead there at least."""

    parent: NodeHash | None
    """The node that first pointed at it; None for the one that the walk began with."""

    node: NodeRow


def walk_nodes(store: Store, text: str) -> list[Reached]:
    """Give the node whose name is, or begins with, *text*, and all that it reaches.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: it means none, or several.
        StoreDamaged: it is there, but no ref has it whole.
    """
    lookup = NodeLookup(store)
    first = lookup.get(lookup.resolve(parse_node_prefix(text))).hash
    given: list[Reached] = []
    met = {first}
    waiting: deque[tuple[int, NodeHash | None, NodeHash]] = deque([(0, None, first)])
    while waiting:
        depth, parent, name = waiting.popleft()
        row, node = build_row(lookup, name)
        given.append(Reached(depth, parent, row))
        for target in [] if node is None else _targets(lookup, node):
            if target not in met:
                met.add(target)
                waiting.append((depth + 1, name, target))
    return given


def _targets(lookup: NodeLookup, node: Node) -> list[NodeHash]:
    try:
        return lookup.list_references(node)
    except StoreDamaged:
        # Its type is damaged, which that node's own row will say.
        return [node.type]
