"""Keeping: a node put by hand goes to refs/cas/nodes, with all that it reaches.

Owns: what has to come with a node. Knows nothing of: where a payload came from.
Always true: what refs/cas/nodes keeps is closed: whatever a node there points at is there too,
so that git's gc leaves it, and pushing that one ref shares it whole. A node that is there is
therefore not walked again.
"""

from collections import deque

from uwf_git.commands.caller import Caller
from uwf_git.errors import Refused, name_some
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.keeper import open_keeper
from uwf_git.store.loose_nodes import NODES_REF, put_nodes
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import Store


class DanglingReferences(Refused):
    """A node points at nodes that are not in the store."""

    code = "dangling-references"

    def __init__(self, missing: dict[NodeHash, NodeHash], *, node: NodeHash) -> None:
        named = [
            name if holder == node else f"{name} (from {holder})"
            for name, holder in missing.items()
        ]
        what = "a node that is" if len(named) == 1 else f"{len(named)} nodes that are"
        super().__init__(
            f"node {node} refers to {what} not in this store: {name_some(named)}",
            hint="put what it refers to first",
            node=node,
            missing=list(missing),
        )


def keep_node(store: Store, caller: Caller, lookup: NodeLookup, node: Node) -> None:
    """Keep *node* and its closure at refs/cas/nodes; what is there already stays as it is.

    Raises:
        DanglingReferences: a node of the closure is not in the store.
        NodeCollision: one of the names has another payload there.
        NodesMoved: others put nodes all the while.
        StoreDamaged: a node of the closure is not whole.
    """
    by_hand = open_keeper(store, NODES_REF)
    closure: dict[NodeHash, Node] = {}
    missing: dict[NodeHash, NodeHash] = {}
    waiting = deque([node])
    while waiting:
        each = waiting.popleft()
        if each.hash in closure:
            continue
        closure[each.hash] = each
        for target in lookup.list_references(each):
            if target in BUILTIN or (by_hand is not None and by_hand.lists(target)):
                continue
            found = lookup.find(target)
            if found is None:
                missing.setdefault(target, each.hash)
            else:
                waiting.append(found)
    if missing:
        raise DanglingReferences(missing, node=node.hash)
    put_nodes(store, list(closure.values()), caller.signing(store))
