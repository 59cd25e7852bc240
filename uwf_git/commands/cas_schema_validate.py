"""`json-cas schema validate`: does a node, or a value, keep to its schema."""

from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.commands.cas_check import find_problems
from uwf_git.commands.cas_types import get_schema, resolve_type
from uwf_git.model.canonical import canonical
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.problem import Problem
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import Store


class Validated(NamedTuple):
    """What came of a check."""

    schema: NodeHash
    problems: tuple[Problem, ...]
    """What is wrong; nothing if all is well."""


def validate_node(
    store: Store, text: str, read_value: Callable[[], Any] | None = None
) -> Validated:
    """Check the node that *text* means against its type, or the value against that node.

    *read_value* is only called once the schema was found.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: *text* means no node, or several.
        NotASchema: there is a value, and the node is no schema; or its type is none.
        NotCanonical: no node can hold the value.
        StoreDamaged: a node that is needed is not whole.
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
    return Validated(schema.hash, tuple(find_problems(schema, payload)))
