"""`json-cas get`: a node as it is."""

from typing import NamedTuple

from uwf_git.commands.cas_rows import find_type_name
from uwf_git.model.node import Node
from uwf_git.model.node_hash import parse_node_prefix
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import Store


class FoundNode(NamedTuple):
    """A node, and what its schema calls itself."""

    node: Node
    type_name: str | None
    """None if the schema has no title, or cannot be read."""


def get_node(store: Store, text: str) -> FoundNode:
    """Give the node whose name is, or begins with, *text*.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: it means none, or several.
        StoreDamaged: it is there, but no ref has it whole.
    """
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(parse_node_prefix(text)))
    return FoundNode(node, find_type_name(lookup, node))
