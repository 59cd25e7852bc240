"""Closures: every node that a node reaches.

Owns: the walk along types and references. Knows nothing of: where nodes are kept.
Always true: a node stands in a closure once, and after the node that first named it.
"""

from collections.abc import Callable, Iterator

from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import collect_references


def walk_closure(roots: list[NodeHash], get_node: Callable[[NodeHash], Node]) -> Iterator[Node]:
    """Give every node that the *roots* reach by their types and references, breadth first.

    Whatever *get_node* raises for a node that is missing goes to the caller.
    """
    known: dict[NodeHash, Node] = {}
    waiting = list(roots)

    def load(name: NodeHash) -> Node:
        if name not in known:
            known[name] = get_node(name)
        return known[name]

    given: set[NodeHash] = set()
    while waiting:
        name = waiting.pop(0)
        if name in given:
            continue
        given.add(name)
        node = load(name)
        yield node
        waiting += direct_references(node, load)


def direct_references(node: Node, get_node: Callable[[NodeHash], Node]) -> list[NodeHash]:
    """List what *node* points at: its type, then the references in its payload."""
    schema = node if node.is_self_typed else get_node(node.type)
    targets = [] if node.is_self_typed else [node.type]
    return targets + [
        target
        for target in collect_references(schema.payload, node.payload)
        if target not in targets
    ]
