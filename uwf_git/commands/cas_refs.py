"""`json-cas refs`: what a node points at."""

from typing import NamedTuple

from uwf_git.commands.cas_rows import NodeRow, build_row
from uwf_git.model.node_hash import parse_node_prefix
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import Store


class Reference(NamedTuple):
    """One node that another points at."""

    as_type: bool
    """Whether it is the type; else it stands in the payload."""

    target: NodeRow


def list_references(store: Store, text: str) -> list[Reference]:
    """Give what the node points at whose name is, or begins with, *text*: its type first.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: it means none, or several.
        StoreDamaged: it, or its type, is there, but no ref has it whole.
    """
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(parse_node_prefix(text)))
    return [
        Reference(target == node.type, build_row(lookup, target)[0])
        for target in lookup.list_references(node)
    ]
