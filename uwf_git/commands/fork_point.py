"""Fork points: which commit of a thread is meant.

Owns: the ways to name one: a step's number, a commit, a step's node.
Knows nothing of: what is done there.
Always true: what is found belongs to the thread, to one that it was forked from, or to another
copy of it (a remote's, or work that was kept because the thread had moved on).
"""

import re
from collections.abc import Iterator

from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.crockford import fold
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import Head
from uwf_git.store.history import walk_history
from uwf_git.store.kept import list_kept
from uwf_git.store.refs import Oid, is_oid
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store

_NUMBER = re.compile("[0-9]{1,6}")
_HEX = re.compile("[0-9a-f]{4,40}")
_SHORTEST_NODE = 4
_MOST_LISTED = 5


class NoSuchStep(Refused):
    """The thread has no such commit or step."""

    code = "no-such-step"

    def __init__(self, thread: ThreadId, text: str) -> None:
        super().__init__(
            f"thread {thread} has no step {text[:60]!r}",
            hint=f"name a step by its number or its hash (`uwf thread show {thread} --full`), or "
            "any commit of the thread",
            thread=thread,
            step=text[:60],
        )


class AmbiguousStep(Refused):
    """Several commits are meant."""

    code = "ambiguous-step"

    def __init__(self, thread: ThreadId, text: str, matches: list[Oid]) -> None:
        shown = ", ".join(matches[:_MOST_LISTED])
        super().__init__(
            f"{text!r} means {len(matches)} commits of thread {thread}: {shown}",
            hint="name the commit in full",
            thread=thread,
            matches=matches,
        )


def find_fork_point(store: Store, head: Head, text: str) -> Snapshot:
    """Find the commit that *text* means: a step's number, a step's hash, or a commit's id.

    Hashes and ids may be shortened. Number 0 is the start; a failed try has its step's number
    only until a step succeeds, and is named by its commit.

    Raises:
        NoSuchStep, AmbiguousStep: none is meant, or several.
        StoreDamaged: the history cannot be read.
    """
    if is_oid(text):
        return _find_commit(store, head, Oid(text))
    matches = {each.commit.oid: each for each in _candidates(store, head) if _is_meant(each, text)}
    if not matches:
        raise NoSuchStep(head.thread, text)
    if len(matches) > 1:
        raise AmbiguousStep(head.thread, text, list(matches))
    return matches.popitem()[1]


def _find_commit(store: Store, head: Head, oid: Oid) -> Snapshot:
    try:
        snapshot = read_snapshot(store, oid)
    except StoreDamaged as error:
        # Another object of the repository, as a branch's commit, or none.
        raise NoSuchStep(head.thread, oid) from error
    if snapshot.record.thread == head.thread:
        return snapshot
    for each in _candidates(store, head):
        if each.commit.oid == oid:
            return each
    raise NoSuchStep(head.thread, oid)


def _candidates(store: Store, head: Head) -> Iterator[Snapshot]:
    yield from walk_history(store, head.commit, through_forks=True)
    for oid in list_kept(store, head.thread):
        yield read_snapshot(store, oid)


def _is_meant(snapshot: Snapshot, text: str) -> bool:
    record = snapshot.record
    if _NUMBER.fullmatch(text):
        return record.event in {"start", "step"} and record.depth == int(text)
    if _HEX.fullmatch(text) and snapshot.commit.oid.startswith(text):
        return True
    is_node = len(text) >= _SHORTEST_NODE and record.node.startswith(fold(text))
    return record.event in {"start", "step"} and is_node
