"""`json-cas schema put`: a JSON Schema becomes a schema node."""

from typing import Any

from uwf_git.commands.caller import Caller
from uwf_git.commands.cas_put import PutNode, put_payload
from uwf_git.model.builtin import META
from uwf_git.store.store import Store


def put_schema(store: Store, caller: Caller, schema: Any) -> PutNode:
    """Store *schema* as a node of the built-in meta-schema.

    Raises:
        NotCanonical, InvalidPayload: it is not a JSON Schema (2020-12).
        NodeCollision: its name has another payload.
        NodesMoved: others put nodes all the while.
        StoreDamaged: what it needs of the store is not whole.
    """
    return put_payload(store, caller, META, schema)
