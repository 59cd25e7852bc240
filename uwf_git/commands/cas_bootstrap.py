"""`json-cas bootstrap`: the store keeps the built-in schemas."""

from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.cas_types import BUILTIN_TYPES
from uwf_git.model.builtin import META
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.loose_nodes import put_nodes
from uwf_git.store.store import Store


class Bootstrapped(NamedTuple):
    """The built-in schemas, as every store has them."""

    meta: NodeHash
    """The meta-schema, which is its own type."""

    schemas: dict[str, NodeHash]
    """The schemas by their names."""


def bootstrap_store(store: Store, caller: Caller) -> Bootstrapped:
    """Keep the built-in schemas at refs/cas/nodes; doing it again changes nothing.

    Threads and workflows bring them along by themselves. Kept here, they can be fetched and read
    with git alone before there is any thread.

    Raises:
        NodesMoved: others put nodes all the while.
        StoreDamaged: refs/cas/nodes is not whole.
    """
    put_nodes(store, [], caller.signing(store))
    return Bootstrapped(META, dict(BUILTIN_TYPES))
