"""`json-cas bootstrap` and `init`: put the built-in schemas into a store."""

from typing import NamedTuple

from uwf_git.commands.admin.init import Initialized, init_store
from uwf_git.commands.caller import Caller
from uwf_git.commands.cas.types import BUILTIN_TYPES
from uwf_git.model.builtin import META
from uwf_git.model.names import NodeHash
from uwf_git.store.lookup.cas_nodes import put_nodes
from uwf_git.store.store import Store


class Bootstrapped(NamedTuple):
    """The hashes of the built-in schemas."""

    meta: NodeHash
    """The meta-schema, which is its own type."""

    schemas: dict[str, NodeHash]
    """The hashes by name."""


def bootstrap_store(store: Store, caller: Caller) -> Bootstrapped:
    """Put the built-in schemas at refs/cas/nodes; doing it again changes nothing.

    Threads and workflows have copies of their own. These can be fetched and read with git alone
    before there is any thread.

    Raises:
        NodesMoved: other processes kept putting nodes.
        StoreDamaged: refs/cas/nodes is damaged.
    """
    put_nodes(store, [], caller.signing(store))
    return Bootstrapped(META, dict(BUILTIN_TYPES))


def init_cas(path: str | None, caller: Caller) -> Initialized:
    """Make the repository at *path* a store, as ``init_store``, and bootstrap it."""
    made = init_store(path, caller.cwd, caller.environ)
    bootstrap_store(made.store, caller)
    return made
