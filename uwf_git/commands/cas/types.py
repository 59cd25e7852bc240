"""Find the schema node of a type by name or hash.

A schema is a meta-schema, or a node whose type is a meta-schema.
"""

from collections.abc import Callable
from typing import Any

from uwf_git.errors import Refused
from uwf_git.model.builtin import BUILTIN_NODES, META
from uwf_git.model.digest import self_typed_hash, typed_hash
from uwf_git.model.names import NodeHash, fold, is_node_hash, parse_node_prefix
from uwf_git.model.node import Node
from uwf_git.store.lookup.lookup import NodeLookup, NoSuchNode
from uwf_git.store.store import Store

BUILTIN_TYPES: dict[str, NodeHash] = {
    node.payload["title"]: node.hash for node in BUILTIN_NODES if node.hash != META
}
"""The built-in schemas by their names: ``Text``, ``Role``, …"""


def find_plain_type(text: str) -> NodeHash | None:
    """Return the type that *text* names without a store: a built-in name, or a whole hash."""
    if text in BUILTIN_TYPES:
        return BUILTIN_TYPES[text]
    folded = fold(text)
    return NodeHash(folded) if is_node_hash(folded) else None


def resolve_type(lookup: NodeLookup, text: str) -> NodeHash:
    """Find the type *text*: a built-in name, a hash, or a unique prefix of one.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: *text* names no node, or several.
    """
    return find_plain_type(text) or lookup.resolve(parse_node_prefix(text))


def get_schema(lookup: NodeLookup, name: NodeHash) -> Node:
    """Return the schema node *name*.

    Raises:
        NoSuchNode, StoreDamaged: it is missing, or damaged.
        Refused: it is no schema.
    """
    node = lookup.get_type(name)
    if not is_schema(lookup, node):
        raise Refused(
            f"node {node.hash} is not a schema: it is of type {node.type}",
            code="not-a-schema",
            hint="`json-cas schema list` names the schemas; `json-cas schema put FILE` adds one",
            node=node.hash,
            type=node.type,
        )
    return node


def is_schema(lookup: NodeLookup, node: Node) -> bool:
    """Check whether *node* is a schema.

    Raises:
        StoreDamaged: all copies of its type are damaged.
    """
    if node.is_self_typed:
        return True
    try:
        return lookup.get_type(node.type).is_self_typed
    except NoSuchNode:
        return False


def hash_payload(
    type_text: str | None, payload: Any, *, open_store: Callable[[], Store]
) -> NodeHash:
    """Return the name of a node of the type *type_text* with *payload*; None is for a meta-schema.

    *open_store* is only called to resolve a prefix.

    Raises:
        NotCanonical: no node can hold the payload.
        NotANodeHash, NoSuchNode, AmbiguousNode: *type_text* names no type, or several.
    """
    if type_text is None:
        return self_typed_hash(payload)
    type_hash = find_plain_type(type_text) or resolve_type(NodeLookup(open_store()), type_text)
    return typed_hash(type_hash, payload)
