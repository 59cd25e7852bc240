"""Thread heads: refs/threads/<id> and refs/archive/<id>, moved by compare-and-swap only.

A thread that has both refs is archived: a crash while it was archived left its active ref.
Format: FORMAT.md, "Refs".
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused, name_some
from uwf_git.model.names import Oid, ThreadId, is_thread_id, parse_thread_prefix
from uwf_git.store.refs import BadRef
from uwf_git.store.store import Store

ACTIVE = "refs/threads/"
ARCHIVE = "refs/archive/"

NEWEST = "@"
_FULL_LENGTH = 26


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


def _ambiguous_thread(text: str, matches: list[ThreadId], described: Sequence[str]) -> Refused:
    error = Refused(
        f"{len(matches)} threads begin with {text}: {name_some(matches)}",
        code="ambiguous-thread",
        hint="give more of the id",
        matches=matches,
    )
    error.lines = [f"{len(matches)} threads begin with {text}", *described]
    return error


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


def resolve_thread(store: Store, text: str) -> ThreadId:
    """Return the thread whose id is *text* or begins so; ``@`` is the newest, ``@2`` the next."""
    return resolve_head(store, text).thread


def resolve_head(store: Store, text: str) -> Head:
    """Return the head of the thread whose id is *text* or begins with it; as `resolve_thread`."""
    thread = parse_thread_id(text)
    try:
        return get_head(store, _resolve_prefix(store, text) if thread is None else thread)
    except NoSuchThread:
        _refuse_not_begun(store, text)
        raise


def parse_thread_id(text: str) -> ThreadId | None:
    """Return *text* if it is a whole thread id, whether or not the thread exists; else None."""
    if text.startswith(NEWEST):
        return None
    prefix = parse_thread_prefix(text)
    return ThreadId(prefix) if len(prefix) == _FULL_LENGTH else None


def _resolve_prefix(store: Store, text: str) -> ThreadId:
    from uwf_git.store.threads.naming import describe_threads, find_newest  # noqa: PLC0415 (it reads threads; few are named so)

    if text.startswith(NEWEST):
        newest = find_newest(store, text)
        if newest is None:
            raise NoSuchThread(text)
        return newest
    prefix = parse_thread_prefix(text)
    # Active first, and without duplicates: a thread may be archived in between.
    threads = [*list_threads(store, archived=False), *list_threads(store, archived=True)]
    matches = [thread for thread in dict.fromkeys(threads) if thread.startswith(prefix)]
    if not matches:
        raise NoSuchThread(text)
    if len(matches) > 1:
        raise _ambiguous_thread(text, matches, describe_threads(store, matches))
    return matches[0]


def _refuse_not_begun(store: Store, text: str) -> None:
    """Raise an error if *text* names branches that nobody has begun here."""
    from uwf_git.store.threads.naming import list_not_begun  # noqa: PLC0415 (it reads threads)

    found = list_not_begun(store, text)
    if len(found) > 1:
        described = [f"{branch}  branch of {parent}" for branch, parent in found.items()]
        raise _ambiguous_thread(text, list(found), described)
    for branch, parent in found.items():
        raise BranchNotBegun(branch, parent)


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
