"""Begin branches of a thread that has split: by whoever first steps or steers one.

The first commit of a branch is derived, so it does not matter who makes it, or how often.
"""

from uwf_git.commands.split.ending import find_split
from uwf_git.commands.split.remake import ReadSplit, read_split
from uwf_git.debug_log import debug
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import (
    BranchNotBegun,
    Head,
    ThreadExists,
    create_head,
    get_head,
    resolve_head,
)
from uwf_git.store.threads.local_files import find_workdir, set_workdir
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


def resolve_or_begin(store: Store, text: str) -> Head:
    """Return the head of the thread that *text* names; a branch that has not begun here begins.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: no thread matches, or several do.
        StoreDamaged: the split of the branch cannot be read.
    """
    try:
        return resolve_head(store, text)
    except BranchNotBegun as error:
        tip = read_snapshot(store, get_head(store, error.parent).commit)
        found = read_split(find_split(tip))
        return get_head(store, begin_in(store, found, found.numbers[error.thread]))


def begin_branch(store: Store, tip: Snapshot, number: int) -> ThreadId:
    """Begin branch *number* of the thread at *tip*, unless it has begun.

    Raises:
        SplitRefused, StoreDamaged: the split cannot be read.
    """
    return begin_in(store, read_split(find_split(tip)), number)


def begin_in(store: Store, found: ReadSplit, number: int) -> ThreadId:
    """Begin branch *number* of the split *found*, unless it has begun.

    Raises:
        StoreDamaged: the split cannot be read.
    """
    derived = found.draft_start(number)
    thread = derived.new.record.thread
    share_workdir(store, found.split.record.thread, thread)
    try:
        create_head(store, thread, derived.write(store))
    except ThreadExists:
        debug("M8V5T2QZ", "branch had begun", thread=thread)
    return thread


def share_workdir(store: Store, trunk: ThreadId, branch: ThreadId) -> None:
    """Let the agents of *branch* run where those of *trunk* do, unless it has its own place."""
    workdir = find_workdir(store, trunk)
    if workdir is not None and find_workdir(store, branch) is None:
        set_workdir(store, branch, workdir)
