"""Heads: where each thread's history now ends.

Owns: the refs below refs/threads/ and refs/archive/.
Knows nothing of: nodes, roles, JSON.
Always true: a head moves only from the commit the caller has seen; a thread that has both refs
is archived, and its active ref is litter of a move that was cut short.
Format: FORMAT.md, "Refs".
"""

from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.errors import Conflict, Refused, name_some
from uwf_git.model.thread_id import ThreadId, is_thread_id, parse_thread_prefix
from uwf_git.store.refs import BadRef, Oid
from uwf_git.store.store import Store

ACTIVE = "refs/threads/"
ARCHIVE = "refs/archive/"

_FULL_LENGTH = 26


class Head(NamedTuple):
    """Where a thread's history ends."""

    thread: ThreadId
    commit: Oid
    archived: bool


class NoSuchThread(Refused):
    """No ref has this thread."""

    code = "no-such-thread"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"there is no thread {text}",
            hint="`uwf thread list --all` shows every thread of this store",
            thread=text,
        )


class AmbiguousThread(Refused):
    """Several threads begin so."""

    code = "ambiguous-thread"

    def __init__(self, text: str, matches: list[ThreadId]) -> None:
        super().__init__(
            f"{len(matches)} threads begin with {text}: {name_some(matches)}",
            hint="give more of the id",
            matches=matches,
        )


class ThreadExists(Conflict):
    """The id that a new thread was to have is taken."""

    code = "thread-exists"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(f"there is a thread {thread} already", thread=thread)


class HeadMoved(Conflict):
    """Somebody else moved the thread in the meantime."""

    code = "head-moved"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} moved on while this was under way",
            hint=f"see what happened with `uwf thread show {thread}`, then try again",
            thread=thread,
        )


def find_head(store: Store, thread: ThreadId) -> Head | None:
    """Give the head of *thread*, or None if there is no such thread."""
    # In this order, or a thread that is archived in between is in neither place.
    active = store.refs.find(ACTIVE + thread)
    archived = store.refs.find(ARCHIVE + thread)
    if archived is not None:
        return Head(thread, archived, archived=True)
    return None if active is None else Head(thread, active, archived=False)


def get_head(store: Store, thread: ThreadId) -> Head:
    """Give the head of *thread*.

    Raises:
        NoSuchThread: there is none.
    """
    head = find_head(store, thread)
    if head is None:
        raise NoSuchThread(thread)
    return head


def resolve_thread(store: Store, text: str) -> ThreadId:
    """Find the thread that *text* means: its id, or a beginning that no other thread has.

    Raises:
        NotAThreadId: nothing can be meant.
        NoSuchThread, AmbiguousThread: none or several begin so.
    """
    prefix = parse_thread_prefix(text)
    if len(prefix) == _FULL_LENGTH:
        return get_head(store, ThreadId(prefix)).thread
    # The active ones first, and each once: a thread may be archived in between.
    threads = [*list_threads(store, archived=False), *list_threads(store, archived=True)]
    matches = [thread for thread in dict.fromkeys(threads) if thread.startswith(prefix)]
    if not matches:
        raise NoSuchThread(text)
    if len(matches) > 1:
        raise AmbiguousThread(text, matches)
    return matches[0]


def list_threads(store: Store, *, archived: bool) -> list[ThreadId]:
    """List the active (or the archived) threads, newest first: a ULID sorts by its time."""
    names = store.refs.names(ARCHIVE if archived else ACTIVE)
    threads = [ThreadId(name) for name in reversed(names) if is_thread_id(name)]
    if archived:
        return threads
    # One by one: there may be a hundred thousand ended threads, and few that are active.
    return [thread for thread in threads if not _is_archived(store, thread)]


def _is_archived(store: Store, thread: ThreadId) -> bool:
    try:
        return store.refs.find(ARCHIVE + thread) is not None
    except BadRef:
        # Whatever it holds, there is one.
        return True


def create_head(store: Store, thread: ThreadId, commit: Oid) -> Head:
    """Make the new *thread* begin at *commit*.

    Raises:
        ThreadExists: its id is taken.
    """
    if store.refs.find(ARCHIVE + thread) is not None or not store.refs.create(
        ACTIVE + thread, commit
    ):
        raise ThreadExists(thread)
    debug("PJN95M8Q", "thread begun", thread=thread, commit=commit)
    _note(store, commit)
    return Head(thread, commit, archived=False)


def advance_head(store: Store, head: Head, to: Oid) -> Head:
    """Move the head of an active thread from where it was seen to *to*, or change nothing.

    Two steps may run at once: the loser has to learn that it lost, not bury the winner's.

    Raises:
        HeadMoved: it is no longer where it was seen.
    """
    # An archived thread's active ref is litter, which a crash can leave: no step may go there.
    if store.refs.find(ARCHIVE + head.thread) is not None or not store.refs.advance(
        ACTIVE + head.thread, seen=head.commit, to=to
    ):
        debug("8TNTN9G3", "head lost", thread=head.thread, seen=head.commit, to=to)
        raise HeadMoved(head.thread)
    debug("FSTR1NP8", "head moved", thread=head.thread, seen=head.commit, to=to)
    _note(store, to)
    return Head(head.thread, to, archived=False)


def archive_head(store: Store, head: Head, to: Oid) -> Head:
    """End an active thread at *to*: create its archive ref, then remove the active one.

    In this order a crash in between leaves both, and the archive wins.

    Raises:
        HeadMoved: it is no longer where it was seen.
    """
    moved = store.refs.move(
        ACTIVE + head.thread, seen=head.commit, to_name=ARCHIVE + head.thread, to=to
    )
    if not moved:
        debug("SW02V902", "archive lost", thread=head.thread, seen=head.commit, to=to)
        raise HeadMoved(head.thread)
    debug("6FDAN8P0", "thread archived", thread=head.thread, seen=head.commit, to=to)
    _note(store, to)
    return Head(head.thread, to, archived=True)


def _note(store: Store, commit: Oid) -> None:
    if store.moves is not None:
        store.moves.note_moved(commit)
