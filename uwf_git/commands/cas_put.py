"""`json-cas put`: a value becomes a node.

Owns: the order check, compare, keep. Knows nothing of: files (it takes values).
Always true: nothing is stored unless the payload keeps to its type and all that it refers to is
in the store; a node that any ref keeps already stays as it was first written, timestamp and all.
"""

from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.cas_check import check_payload
from uwf_git.commands.cas_keep import keep_node
from uwf_git.commands.cas_types import get_schema, resolve_type
from uwf_git.errors import StoreDamaged
from uwf_git.model.node import Node, build_node, build_self_typed_node
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.node_tree import NodeCollision
from uwf_git.store.store import Store


class PutNode(NamedTuple):
    """A node that the store now keeps."""

    hash: NodeHash
    new: bool
    """Whether no ref kept it before."""


def put_payload(store: Store, caller: Caller, type_text: str | None, payload: Any) -> PutNode:
    """Store *payload* as a node of the type that *type_text* means; None makes a meta-schema.

    Putting the same again changes nothing.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode, NotASchema: there is no such type.
        NotCanonical, InvalidPayload: no node, or none of this type, can hold the payload.
        DanglingReferences: it refers to nodes that are not in the store.
        NodeCollision: its name has another payload.
        NodesMoved: others put nodes all the while.
        StoreDamaged: what it needs of the store is not whole.
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
        # The copies of others are spoiled; this one is whole.
        return None
    if present is not None and (present.type, present.payload) != (node.type, node.payload):
        raise NodeCollision(node.hash)
    return present
