"""Thread heads: refs/threads/<id> and refs/archive/<id>, moved by compare-and-swap only.

A thread that has both refs is archived: a crash while it was archived left its active ref.
Format: FORMAT.md, "Refs".
"""

from contextlib import suppress
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused
from uwf_git.model.names import Oid, ThreadId, is_thread_id
from uwf_git.store.refs import BadRef
from uwf_git.store.store import Store

ACTIVE = "refs/threads/"
ARCHIVE = "refs/archive/"

NEWEST = "@"


class Head(NamedTuple):
    thread: ThreadId
    commit: Oid
    archived: bool


class NoSuchThread(Refused):
    code = "no-such-thread"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"there is no thread {text}",
            hint="`uwf thread list --all` shows every thread of this store",
            thread=text,
        )
        if text == NEWEST:
            self.hint = "no thread has begun in this store: `uwf run WORKFLOW -p '…'` begins one"


class BranchNotBegun(Refused):
    """A thread has split into this branch, and nobody has begun it here."""

    code = "branch-not-begun"

    def __init__(self, thread: ThreadId, parent: ThreadId) -> None:
        super().__init__(
            f"branch {thread} of thread {parent} has not begun here",
            hint=f"`uwf thread step {thread}` takes its first step",
            thread=thread,
            parent=parent,
        )
        self.thread, self.parent = thread, parent


class ThreadExists(Conflict):
    code = "thread-exists"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(f"there is a thread {thread} already", thread=thread)


class HeadMoved(Conflict):
    code = "head-moved"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} moved on while this was under way",
            hint=f"see what happened with `uwf thread show {thread}`, then try again",
            thread=thread,
        )


def find_head(store: Store, thread: ThreadId) -> Head | None:
    # In this order, a thread that is archived in between is found at least once.
    active = store.refs.find(ACTIVE + thread)
    archived = store.refs.find(ARCHIVE + thread)
    if archived is not None:
        return Head(thread, archived, archived=True)
    return None if active is None else Head(thread, active, archived=False)


def get_head(store: Store, thread: ThreadId) -> Head:
    head = find_head(store, thread)
    if head is None:
        store.refs.check_packed()
        raise NoSuchThread(thread)
    return head


def list_threads(store: Store, *, archived: bool) -> list[ThreadId]:
    """List the active (or the archived) threads, newest first: ULIDs sort by time."""
    names = store.refs.names(ARCHIVE if archived else ACTIVE)
    threads = [ThreadId(name) for name in reversed(names) if is_thread_id(name)]
    if archived:
        return threads
    # One look-up each: there may be 100,000 archived threads, and few active ones.
    return [thread for thread in threads if not _is_archived(store, thread)]


def _is_archived(store: Store, thread: ThreadId) -> bool:
    with suppress(BadRef):
        return store.refs.find(ARCHIVE + thread) is not None
    # The ref exists, whatever it holds.
    return True


def create_head(store: Store, thread: ThreadId, commit: Oid) -> Head:
    if store.refs.find(ARCHIVE + thread) is not None or not store.refs.create(
        ACTIVE + thread, commit
    ):
        raise ThreadExists(thread)
    debug("PJN95M8Q", "thread begun", thread=thread, commit=commit)
    store.own_transitions.note_moved(commit)
    return Head(thread, commit, archived=False)


def advance_head(store: Store, head: Head, to: Oid) -> Head:
    """Move the head of an active thread to *to*; its first parent is the old head.

    Raises HeadMoved if another process moved the head first; nothing has changed.
    """
    # A crash can leave the active ref of an archived thread: no step may advance that.
    if store.refs.find(ARCHIVE + head.thread) is not None or not store.refs.advance(
        ACTIVE + head.thread, seen=head.commit, to=to
    ):
        debug("8TNTN9G3", "head lost", thread=head.thread, seen=head.commit, to=to)
        raise HeadMoved(head.thread)
    debug("FSTR1NP8", "head moved", thread=head.thread, seen=head.commit, to=to)
    store.own_transitions.note_moved(to)
    return Head(head.thread, to, archived=False)


def archive_head(store: Store, head: Head, to: Oid) -> Head:
    """End an active thread at *to*: create its archive ref, then remove the active one.

    A crash in between leaves both, and the archive ref counts.
    """
    moved = store.refs.move(
        ACTIVE + head.thread, seen=head.commit, to_name=ARCHIVE + head.thread, to=to
    )
    if not moved:
        debug("SW02V902", "archive lost", thread=head.thread, seen=head.commit, to=to)
        raise HeadMoved(head.thread)
    debug("6FDAN8P0", "thread archived", thread=head.thread, seen=head.commit, to=to)
    store.own_transitions.note_moved(to)
    return Head(head.thread, to, archived=True)


def replace_archive(store: Store, head: Head, to: Oid, *, archived: bool) -> None:
    """Let an ended thread be at *to*, not *archived*: active; the caller keeps the old end."""
    refs, ref = store.refs, ARCHIVE + head.thread
    if archived:
        is_done = refs.advance(ref, seen=head.commit, to=to)
    else:
        # In this order: what a kill in between leaves out, the next fetch brings.
        is_done = refs.delete(ref, seen=head.commit) and refs.create(ACTIVE + head.thread, to)
    if not is_done:
        raise HeadMoved(head.thread)
    debug("4WQ7T0KD", "archive replaced", thread=head.thread, seen=head.commit, to=to)
    store.own_transitions.note_moved(to)
