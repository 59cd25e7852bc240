"""`json-cas hash`: the name that a value would have.

Always true: a built-in name or a whole hash needs no store, and the type need not exist.
"""

from collections.abc import Callable
from typing import Any

from uwf_git.commands.cas_types import find_plain_type, resolve_type
from uwf_git.model.digest import self_typed_hash, typed_hash
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import Store


def hash_payload(
    type_text: str | None, payload: Any, *, open_store: Callable[[], Store]
) -> NodeHash:
    """Name the node that *payload* would be, of the type *type_text*; None is for a meta-schema.

    *open_store* is only called for the beginning of a hash.

    Raises:
        NotCanonical: no node can hold the payload.
        NotANodeHash, NoSuchNode, AmbiguousNode: *type_text* can be no type, or means several.
    """
    if type_text is None:
        return self_typed_hash(payload)
    type_hash = find_plain_type(type_text) or resolve_type(NodeLookup(open_store()), type_text)
    return typed_hash(type_hash, payload)
