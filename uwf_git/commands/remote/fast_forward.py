"""Fast-forward before a step: take over what the last fetch left in the thread's tracking refs.

A store without remotes pays nothing for this, not even imports.
"""

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store


def fast_forward_from_tracking(store: Store, thread: ThreadId) -> bool:
    """Fast-forward *thread* to its tracking refs before a step; return whether it moved.

    The caller holds the lock. A thread that diverged from a remote may be stepped, so that work
    goes on without a network; unless it has *ended* at a remote, as the sides could never be
    joined.
    """
    if not store.has_remotes:
        return False
    from uwf_git.store.remotes.remotes import list_sides  # noqa: PLC0415 (only for stores with remotes)

    for remote, sides in list_sides(store, thread):
        if sides.active is None or sides.is_in_sync:
            continue
        from uwf_git.commands.remote.reconcile import reconcile_thread, take_over_steering  # noqa: PLC0415 (imports all checks; few steps need them)

        try:
            reconciled = reconcile_thread(store, remote, thread)
            debug("ZV8N6BWT", "tracked", thread=thread, remote=remote.name, event=reconciled.event)
        except Conflict:
            # An agent's work has to be recorded first, or another process moved the thread.
            debug("QZHR5YRJ", "tracked in vain", thread=thread, remote=remote.name)
            if take_over_steering(store, remote, thread) is not None:
                return True
            continue
        if reconciled.event in {"moved", "archived"}:
            return True
        there = sides.there_archived
        if reconciled.event == "diverged" and there is not None:
            here = sides.active
            raise Conflict(
                f"thread {thread} has ended at {remote.name}, at {there}, "
                f"which does not descend from {here} here",
                code="ended-elsewhere",
                hint=f"continue in a fork: `uwf thread fork {thread} --at {here}`",
                thread=thread,
                remote=remote.name,
                local=here,
                tracked=there,
            )
    return False
