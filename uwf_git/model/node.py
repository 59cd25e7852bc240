"""Nodes: the immutable envelopes everything is kept in.

Owns: the envelope ``{type, payload, timestamp}`` and the check of a name against its content.
Knows nothing of: files, trees, what a payload means.
Always true: a ``Node`` that was built carries the name its content has.
"""

from typing import Any, NamedTuple

from uwf_git.model.canonical import canonical
from uwf_git.model.digest import canonical_hash
from uwf_git.model.node_hash import NodeHash


class Node(NamedTuple):
    """One node: a payload, the schema node that describes it, and when it was first written."""

    hash: NodeHash
    type: NodeHash
    """The name of the schema node that describes the payload; a meta-schema names itself."""

    payload: Any
    """Any JSON value, in canonical form."""

    timestamp: int
    """Milliseconds since 1970. Not hashed: equal content has one name whenever it is written."""

    @property
    def is_self_typed(self) -> bool:
        """Tell whether this node is a meta-schema: its type is its own name."""
        return self.type == self.hash


def build_node(type_hash: NodeHash, payload: Any, *, timestamp: int) -> Node:
    """Build the node of *type_hash* that holds *payload*.

    Raises:
        NotCanonical: no node can hold the payload.
    """
    value = canonical(payload)
    return Node(canonical_hash(type_hash, value), type_hash, value, timestamp)


def build_self_typed_node(payload: Any, *, timestamp: int) -> Node:
    """Build the meta-schema node that holds *payload* and is its own type.

    Raises:
        NotCanonical: no node can hold the payload.
    """
    value = canonical(payload)
    name = canonical_hash(None, value)
    return Node(name, name, value, timestamp)


def content_hash(type_hash: NodeHash, payload: Any, *, name: NodeHash) -> NodeHash:
    """Give the name that this content, in canonical form, has when it is kept under *name*.

    A node that says it is its own type is hashed as a meta-schema.
    """
    return canonical_hash(None if type_hash == name else type_hash, payload)
