"""`json-cas schema list`: the schemas, built in and put by hand.

Knows nothing of: the schemas inside workflows; those are their roles' business.
Always true: a damaged node is one row that says so, never a failed list.
"""

from typing import NamedTuple

from uwf_git.commands.cas_rows import find_title
from uwf_git.commands.cas_types import is_schema
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN, BUILTIN_NODES
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.keeper import Keeper, open_keeper
from uwf_git.store.loose_nodes import NODES_REF, list_nodes
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import Store


class SchemaRow(NamedTuple):
    """One schema."""

    hash: NodeHash
    title: str | None
    """What it calls itself; None if it does not."""

    builtin: bool
    problem: str | None = None
    """Why the node cannot be read; whether it is a schema, nobody knows then."""


def list_schemas(store: Store, *, limit: int | None = None) -> list[SchemaRow]:
    """Give the built-in schemas, and then the others by title.

    Raises:
        StoreDamaged: refs/cas/nodes as a whole cannot be read.
    """
    rows = [SchemaRow(each.hash, find_title(each.payload), builtin=True) for each in BUILTIN_NODES]
    by_hand = open_keeper(store, NODES_REF)
    lookup = NodeLookup(store)
    others: list[SchemaRow] = []
    for name in list_nodes(store):
        if name not in BUILTIN and by_hand is not None:
            others += _rows(by_hand, lookup, name)
    others.sort(key=lambda row: (row.title is None, row.title or "", row.hash))
    return [*rows, *others][:limit]


def _rows(by_hand: Keeper, lookup: NodeLookup, name: NodeHash) -> list[SchemaRow]:
    try:
        node = by_hand.find(name)
        if node is None or not is_schema(lookup, node):
            return []
    except StoreDamaged as error:
        return [SchemaRow(name, None, builtin=False, problem=error.message)]
    return [SchemaRow(name, find_title(node.payload), builtin=False)]
