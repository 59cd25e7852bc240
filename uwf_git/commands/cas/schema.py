"""`json-cas schema`: list, get, put schemas, and validate nodes.

The list has the built-in schemas and those put by hand, not those of roles in workflows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.cas.check import find_problems
from uwf_git.commands.cas.put import PutNode, put_payload
from uwf_git.commands.cas.rows import find_title
from uwf_git.commands.cas.types import get_schema, is_schema, resolve_type
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN, BUILTIN_NODES, META
from uwf_git.model.canonical import canonical
from uwf_git.model.names import NodeHash
from uwf_git.model.problem import Problem
from uwf_git.store.lookup.cas_nodes import NODES_REF, list_nodes
from uwf_git.store.lookup.lookup import NodeLookup
from uwf_git.store.lookup.roots import NodeRoot, open_root
from uwf_git.store.store import Store


class SchemaRow(NamedTuple):
    """One schema."""

    hash: NodeHash
    title: str | None
    """Its title; None if it has none."""

    builtin: bool
    problem: str | None = None
    """Why the node cannot be read; it may be no schema then."""


def list_schemas(store: Store, *, limit: int | None = None) -> list[SchemaRow]:
    """List the built-in schemas, then the others by title; a damaged node is a row that says so.

    Raises:
        StoreDamaged: refs/cas/nodes cannot be read.
    """
    rows = [SchemaRow(each.hash, find_title(each.payload), builtin=True) for each in BUILTIN_NODES]
    by_hand = open_root(store, NODES_REF)
    lookup = NodeLookup(store)
    others: list[SchemaRow] = []
    for name in list_nodes(store):
        if name not in BUILTIN and by_hand is not None:
            others += _rows(by_hand, lookup, name)
    others.sort(key=lambda row: (row.title is None, row.title or "", row.hash))
    return [*rows, *others][:limit]


def _rows(by_hand: NodeRoot, lookup: NodeLookup, name: NodeHash) -> list[SchemaRow]:
    try:
        node = by_hand.find(name)
        if node is None or not is_schema(lookup, node):
            return []
    except StoreDamaged as error:
        return [SchemaRow(name, None, builtin=False, problem=error.message)]
    return [SchemaRow(name, find_title(node.payload), builtin=False)]


class NodeValidation(NamedTuple):
    """The outcome of a check."""

    schema: NodeHash
    problems: tuple[Problem, ...]
    """Empty if the node is valid."""


def validate_node(
    store: Store, text: str, read_value: Callable[[], Any] | None = None
) -> NodeValidation:
    """Check the node *text* against its type; with *read_value*, check that value against the node.

    *read_value* is only called once the schema was found.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: *text* names no node, or several.
        Refused: the node (with a value) or its type (without) is no schema.
        NotCanonical: no node can hold the value.
        StoreDamaged: a node that is needed is damaged.
    """
    lookup = NodeLookup(store)
    name = resolve_type(lookup, text)
    if read_value is not None:
        schema = get_schema(lookup, name)
        payload = canonical(read_value())
    else:
        node = lookup.get(name)
        schema = get_schema(lookup, node.type)
        payload = node.payload
    return NodeValidation(schema.hash, tuple(find_problems(schema, payload)))


def put_schema(store: Store, caller: Caller, schema: Any) -> PutNode:
    """Store *schema* as a node of the built-in meta-schema; it raises as ``put_payload``."""
    return put_payload(store, caller, META, schema)


def get_schema_payload(store: Store, text: str) -> Any:
    """Return the JSON Schema *text*: a built-in name, a hash, or a unique prefix of one.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode, Refused: *text* names no schema, or several.
        StoreDamaged: it is damaged.
    """
    lookup = NodeLookup(store)
    return get_schema(lookup, resolve_type(lookup, text)).payload
