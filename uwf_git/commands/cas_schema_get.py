"""`json-cas schema get`: a JSON Schema as it was put."""

from typing import Any

from uwf_git.commands.cas_types import get_schema, resolve_type
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import Store


def get_schema_payload(store: Store, text: str) -> Any:
    """Give the JSON Schema that *text* means: a built-in name, a hash, or the beginning of one.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode, NotASchema: it means none, or several.
        StoreDamaged: it is not whole.
    """
    lookup = NodeLookup(store)
    return get_schema(lookup, resolve_type(lookup, text)).payload
