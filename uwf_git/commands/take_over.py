"""Taking over: before a step, what the last fetch brought of its thread.

Owns: when a step goes on from what a remote has, and when it must not be taken.
Knows nothing of: connections; the tracking refs tell, whether `uwf fetch` or `git fetch` wrote
them.
Always true: a thread that has ended at a remote is not stepped here, once that is known; and a
store without remotes pays nothing, not even for imports.
"""

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store


class EndedElsewhere(Conflict):
    """The thread has ended elsewhere, and goes another way here: no push can ever join them."""

    code = "ended-elsewhere"

    def __init__(self, remote: str, thread: ThreadId, *, here: Oid, there: Oid) -> None:
        super().__init__(
            f"thread {thread} has ended at {remote}, at {there}, without what is here, {here}",
            hint=f"go on in a thread of its own: `uwf thread fork {thread} --at {here}`",
            thread=thread,
            remote=remote,
            local=here,
            tracked=there,
        )


def has_remotes(store: Store) -> bool:
    """Tell whether there may be anything to take over."""
    names = store.config.values
    return any(name.startswith("remote.") and name.endswith(".url") for name in names)


def take_over_tracked(store: Store, thread: ThreadId) -> bool:
    """Take over what a fetch left in the tracking refs of *thread*, before a step of it.

    The caller holds the lock. A step on a thread that merely went on elsewhere as well is
    allowed: it stays as diverged as it was, and work goes on where there is no network. One that
    has *ended* elsewhere is not stepped, since nothing could ever join the two again.

    Returns:
        Whether it is no longer where it was: the caller has to read the thread again.

    Raises:
        EndedElsewhere: it has ended at a remote, without what is here.
    """
    if not has_remotes(store):
        return False
    from uwf_git.store.remotes import list_remotes  # noqa: PLC0415 (only for those who share)
    from uwf_git.store.thread_sides import read_sides  # noqa: PLC0415 (see above)

    for remote in list_remotes(store.config):
        try:
            sides = read_sides(store, remote, thread)
        except StoreDamaged:
            # A step needs no tracking ref; the next fetch tells of this one.
            continue
        if sides.active is None or sides.is_settled:
            continue
        from uwf_git.commands.reconcile import (  # noqa: PLC0415 (brings all checks along; few steps need them)
            settle_steered,
            settle_thread,
        )

        try:
            settled = settle_thread(store, remote, thread)
            debug("ZV8N6BWT", "tracked", thread=thread, remote=remote.name, event=settled.event)
        except Conflict:
            # An agent's work waits to be recorded first, or somebody was faster.
            debug("QZHR5YRJ", "tracked in vain", thread=thread, remote=remote.name)
            if settle_steered(store, remote, thread) is not None:
                return True
            continue
        if settled.event in {"moved", "archived"}:
            return True
        there = sides.there_archived
        if settled.event == "diverged" and there is not None:
            raise EndedElsewhere(remote.name, thread, here=sides.active, there=there)
    return False
