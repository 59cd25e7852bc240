"""Nodes: the immutable envelope ``{type, payload, timestamp}``, named by a hash of its content."""

from typing import Any, NamedTuple

from uwf_git.model.canonical import canonical
from uwf_git.model.digest import canonical_hash
from uwf_git.model.names import NodeHash


class Node(NamedTuple):
    """One node: a payload, its schema node, and when it was first written."""

    hash: NodeHash
    type: NodeHash
    """The hash of the schema node of the payload; a meta-schema has its own."""

    payload: Any
    """Any JSON value, in canonical form."""

    timestamp: int
    """Milliseconds since 1970. Not hashed: equal content has one name whenever it is written."""

    @property
    def is_self_typed(self) -> bool:
        """Return True for a meta-schema: its type is its own hash."""
        return self.type == self.hash


def build_node(type_hash: NodeHash, payload: Any, *, timestamp: int) -> Node:
    value = canonical(payload)
    return Node(canonical_hash(type_hash, value), type_hash, value, timestamp)


def build_self_typed_node(payload: Any, *, timestamp: int) -> Node:
    value = canonical(payload)
    name = canonical_hash(None, value)
    return Node(name, name, value, timestamp)


def content_hash(type_hash: NodeHash, payload: Any, *, name: NodeHash) -> NodeHash:
    """Return the hash of canonical content; if *name* is its type, as a meta-schema."""
    return canonical_hash(None if type_hash == name else type_hash, payload)
