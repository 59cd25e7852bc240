"""Packing by itself: after a command has said what it did, perhaps the store is packed.

Owns: the one call by which commands that write ask for it.
Knows nothing of: when it is due. Always true: nothing here fails a command that is done, and
nobody waits for it, unless git config says so (gc.autoDetach).
"""

from uwf_git.cli.calling import caller_of
from uwf_git.cli.settings import Session
from uwf_git.store.packing_policy import find_due
from uwf_git.store.store import Store


def pack_when_due(session: Session, store: Store) -> None:
    """Start packing *store* if it is due; call it with the result printed and no lock held."""
    try:
        if not find_due(store):
            return
        from uwf_git.commands.gc_store import (  # noqa: PLC0415 (once in some hundred steps)
            is_gc_due,
            start_gc,
        )

        if is_gc_due(store):
            start_gc(store, caller_of(session))
    except OSError:
        # The command is done; the next one asks again.
        return
