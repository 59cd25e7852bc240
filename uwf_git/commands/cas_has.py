"""`json-cas has`: is a node there."""

from typing import NamedTuple

from uwf_git.model.node_hash import parse_node_prefix
from uwf_git.store.node_lookup import NodeLookup, NoSuchNode
from uwf_git.store.store import Store


class Presence(NamedTuple):
    """Whether a node is there."""

    hash: str
    """Its name; if it is not there, what was asked for."""

    exists: bool


def has_node(store: Store, text: str) -> Presence:
    """Tell whether any ref keeps the node whose name is, or begins with, *text*.

    Raises:
        NotANodeHash: no node can have this name.
        AmbiguousNode: several begin so.
        StoreDamaged: it is there, but no ref has it whole.
    """
    prefix = parse_node_prefix(text)
    lookup = NodeLookup(store)
    try:
        name = lookup.resolve(prefix)
    except NoSuchNode:
        return Presence(prefix, exists=False)
    return Presence(name, exists=lookup.find(name) is not None)
