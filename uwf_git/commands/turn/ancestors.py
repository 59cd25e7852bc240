"""The threads above a branch: whether they let it go on."""

from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.lock import is_being_stopped
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


class BranchHeld(Refused):
    """The thread is a branch, and the thread that it belongs to keeps it from going on."""

    code = "branch-held"

    def __init__(
        self, thread: ThreadId, parent: ThreadId, status: str, *, problem: str, hint: str
    ) -> None:
        super().__init__(
            f"thread {thread} is a branch of {parent}, which {problem}",
            hint=hint.format(thread=thread, parent=parent),
            thread=thread,
            parent=parent,
            status=status,
        )


def check_ancestors(store: Store, snapshot: Snapshot) -> None:
    """Check that no thread of which this one is a branch keeps it from going on.

    Raises:
        BranchHeld: one is paused, has ended or is being ended, or has joined its branches.
    """
    while (parent := snapshot.get_trunk()) is not None:
        thread = snapshot.record.thread
        head = find_head(store, parent)
        if head is None:
            # The branch alone was fetched.
            return
        snapshot = read_snapshot(store, head.commit)
        status = str(snapshot.record.status)
        if status in ENDED or is_being_stopped(store, parent):
            told = status if status in ENDED else "being ended"
            hint = "`uwf thread show {parent}` tells by whom"
            raise BranchHeld(thread, parent, "killed", problem=f"is {told}", hint=hint)
        if status == "paused":
            hint = "`uwf thread resume {parent}` lets its branches go on"
            raise BranchHeld(thread, parent, status, problem="is paused", hint=hint)
        found = snapshot.get_present().split
        if found is None or thread not in {child.thread for child in found.children}:
            hint = "`uwf thread fork {thread}` continues it in a new thread"
            raise BranchHeld(thread, parent, "joined", problem="goes on without it", hint=hint)
