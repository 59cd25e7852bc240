"""Types: which schema node is meant, and whether it is one.

Owns: the names of the built-in schemas on the command line. Knows nothing of: payloads.
Always true: a schema is a node whose type is a meta-schema, or a meta-schema itself.
"""

from uwf_git.errors import Refused
from uwf_git.model.builtin import BUILTIN_NODES, META
from uwf_git.model.crockford import fold
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, is_node_hash, parse_node_prefix
from uwf_git.store.node_lookup import NodeLookup, NoSuchNode

BUILTIN_TYPES: dict[str, NodeHash] = {
    node.payload["title"]: node.hash for node in BUILTIN_NODES if node.hash != META
}
"""The built-in schemas by their names: ``Text``, ``Role``, …"""


class NotASchema(Refused):
    """The node is there, but nothing can be of its type."""

    code = "not-a-schema"

    def __init__(self, node: Node) -> None:
        super().__init__(
            f"node {node.hash} is not a schema: it is of type {node.type}",
            hint="`json-cas schema list` names the schemas; `json-cas schema put FILE` adds one",
            node=node.hash,
            type=node.type,
        )


def find_plain_type(text: str) -> NodeHash | None:
    """Give the type that *text* means in every store: a built-in name, or a whole hash."""
    if text in BUILTIN_TYPES:
        return BUILTIN_TYPES[text]
    folded = fold(text)
    return NodeHash(folded) if is_node_hash(folded) else None


def resolve_type(lookup: NodeLookup, text: str) -> NodeHash:
    """Find the type that *text* means: a built-in name, a hash, or the beginning of one.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: it means none, or several.
    """
    return find_plain_type(text) or lookup.resolve(parse_node_prefix(text))


def get_schema(lookup: NodeLookup, name: NodeHash) -> Node:
    """Give the node *name*, which has to be a schema.

    Raises:
        NoSuchNode, StoreDamaged: it is not there, or not whole.
        NotASchema: it is another kind of node.
    """
    node = lookup.get_type(name)
    if not is_schema(lookup, node):
        raise NotASchema(node)
    return node


def is_schema(lookup: NodeLookup, node: Node) -> bool:
    """Tell whether *node* is a schema.

    Raises:
        StoreDamaged: its type is there, but no ref has it whole.
    """
    if node.is_self_typed:
        return True
    try:
        return lookup.get_type(node.type).is_self_typed
    except NoSuchNode:
        return False
