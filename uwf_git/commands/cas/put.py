"""`json-cas put`: a node goes to refs/cas/nodes with all nodes that it reaches.

refs/cas/nodes is closed under references, so that git's gc keeps the nodes and a push of that ref
shares them. A node that it has is therefore not walked again.
"""

from collections import deque
from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.cas.check import check_payload
from uwf_git.commands.cas.types import get_schema, resolve_type
from uwf_git.errors import Refused, StoreDamaged, name_some
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node, build_self_typed_node
from uwf_git.store.lookup.cas_nodes import NODES_REF, put_nodes
from uwf_git.store.lookup.lookup import NodeLookup
from uwf_git.store.lookup.roots import open_root
from uwf_git.store.nodes.tree import node_collision
from uwf_git.store.store import Store


def keep_node(store: Store, caller: Caller, lookup: NodeLookup, node: Node) -> None:
    """Put *node* and its closure at refs/cas/nodes; nodes that it has stay as they are.

    Raises:
        Refused: a node of the closure is not in the store.
        StoreDamaged: refs/cas/nodes has another payload under one of the names.
        NodesMoved: other processes kept putting nodes.
        StoreDamaged: a node of the closure is damaged.
    """
    by_hand = open_root(store, NODES_REF)
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
        named = [
            name if holder == node.hash else f"{name} (from {holder})"
            for name, holder in missing.items()
        ]
        what = "a node that is" if len(named) == 1 else f"{len(named)} nodes that are"
        raise Refused(
            f"node {node.hash} refers to {what} not in this store: {name_some(named)}",
            code="dangling-references",
            hint="put these nodes first",
            node=node.hash,
            missing=list(missing),
        )
    put_nodes(store, list(closure.values()), caller.signing(store))


class PutNode(NamedTuple):
    """A node that is in the store."""

    hash: NodeHash
    new: bool
    """Whether no ref held it before."""


def put_payload(store: Store, caller: Caller, type_text: str | None, payload: Any) -> PutNode:
    """Store *payload* as a node of the type *type_text*; None makes a meta-schema.

    Putting the same again changes nothing. It raises as ``keep_node``.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode, Refused: there is no such type.
        NotCanonical, InvalidPayload: no node, or none of this type, can hold the payload.
    """
    lookup = NodeLookup(store)
    now_ms = caller.now_ms()
    if type_text is None:
        node = type_node = build_self_typed_node(payload, timestamp=now_ms)
    else:
        type_node = get_schema(lookup, resolve_type(lookup, type_text))
        node = build_node(type_node.hash, payload, timestamp=now_ms)
    check_payload(type_node, node.payload)
    present = _find_same(lookup, node)
    keep_node(store, caller, lookup, present or node)
    return PutNode(node.hash, new=present is None)


def _find_same(lookup: NodeLookup, node: Node) -> Node | None:
    try:
        present = lookup.find(node.hash)
    except StoreDamaged:
        # All copies in the store are damaged; the new one is whole.
        return None
    if present is not None and (present.type, present.payload) != (node.type, node.payload):
        raise node_collision(node.hash)
    return present
