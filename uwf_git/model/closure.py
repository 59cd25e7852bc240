"""Closures: every node that a node reaches by types and references."""

from collections.abc import Callable, Iterator

from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import collect_references


def walk_closure(roots: list[NodeHash], get_node: Callable[[NodeHash], Node]) -> Iterator[Node]:
    """Yield every node that the *roots* reach by their types and references, breadth first.

    Each node once, after the node that first referred to it. Errors of *get_node* are passed on.
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
    """List what *node* refers to: its type, then the references in its payload."""
    schema = node if node.is_self_typed else get_node(node.type)
    targets = [] if node.is_self_typed else [node.type]
    return targets + [
        target
        for target in collect_references(schema.payload, node.payload)
        if target not in targets
    ]
