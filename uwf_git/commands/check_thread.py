"""Checking a thread: does its history say what happened, and hold what it says.

Owns: the order of the checks. Knows nothing of: which threads there are, how troubles are told.
Always true: nothing is written, and nothing is raised for what is found: damage is a trouble. The
history is walked back once for its ids, and read once from the oldest to the newest, each tree
only as far as it differs from the one before.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from uwf_git.commands.check_commit import CommitChecks, Point
from uwf_git.commands.check_history import History, walk_back
from uwf_git.commands.check_tree import TreeChecks
from uwf_git.commands.trouble import Trouble
from uwf_git.model.thread import ENDED
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store

Place = Literal["active", "archive", "kept"]

_FOREIGN = (
    "see it with `git log {commit}`; another copy of this store knows where the thread is: "
    "`git fetch`"
)
_REWRITTEN = (
    "history is never rewritten: fetch, go on from the newest commit, and push that; "
    "`uwf thread fork` makes a thread of its own of what differs"
)
_MOVE = "`git update-ref {} {}` and `git update-ref -d {}` move it"


class Claim(NamedTuple):
    """What a ref says: that this commit is where this thread is."""

    ref: str
    thread: ThreadId
    tip: Oid
    place: Place


def check_thread(
    store: Store, thread: ThreadId, tip: Oid, *, archived: bool, known: Oid | None = None
) -> Iterator[Trouble]:
    """Give what is wrong in the history of *thread* from *tip* back to *known*, exclusive.

    Without *known* back to its beginning; nothing if all is well. *known* is believed.
    """
    place: Place = "archive" if archived else "active"
    ref = (ARCHIVE if archived else ACTIVE) + thread
    checks = ThreadChecks(TreeChecks(store))
    yield from checks.check(Claim(ref, thread, tip, place), known=known)
    yield from checks.finish()


class ThreadChecks:
    """The threads that are looked at in one run: what two of them share is looked at once."""

    def __init__(self, trees: TreeChecks) -> None:
        self._objects, self._trees = trees.objects, trees
        self._seen: set[Oid] = set()

    def check(self, claim: Claim, *, known: Oid | None = None) -> Iterator[Trouble]:
        """Give what is wrong with what *claim* says, back to *known* or to the beginning.

        Some of it is told only at ``finish``.
        """
        history = walk_back(self._objects, claim.tip, self._seen if known is None else {known})
        yield from _check_end(claim, history, known)
        commits = CommitChecks(self._trees, claim.ref)
        if history.behind is not None:
            commits.believe(history.behind)
        behind = _thread_of(commits.before)
        owner = _owner(claim, history, behind)
        if owner != claim.thread:
            yield _trouble(claim, f"{claim.ref} points at a commit of thread {owner}", _FOREIGN)
        owners = [owner, *history.beginnings[1:]]
        oldest = history.commits[-1] if history.commits else None
        if oldest is not None and oldest not in history.forks and behind not in {None, owners[-1]}:
            message = f"commit {oldest} goes on from one of thread {behind}, and is no fork"
            yield _trouble(claim, message, _FOREIGN, commit=oldest)
        has_beginning = history.behind is None and history.damage is None
        for oid in reversed(history.commits):
            if oid in history.forks and oid != oldest:
                owners.pop()
            is_first = has_beginning and oid == oldest
            yield from commits.check(oid, owners[-1], is_first=is_first)
            self._seen.add(oid)
            self._trees.commits += 1
        yield from _check_status(claim, commits.before)

    def finish(self) -> Iterator[Trouble]:
        """Give what is still to be told."""
        yield from self._trees.nodes.finish()


def _check_end(claim: Claim, history: History, known: Oid | None) -> Iterator[Trouble]:
    damage = history.damage
    if damage is not None:
        oid = damage.facts.get("commit") or damage.facts.get("object")
        message = f"the history of {claim.ref} breaks off: {damage.message}"
        yield _trouble(claim, message, damage.hint or _FOREIGN, commit=oid)
    elif known is not None and history.behind is None:
        message = f"{claim.tip} does not descend from {known}, where {claim.ref} was"
        yield _trouble(claim, message, _REWRITTEN)


def _check_status(claim: Claim, last: Point | None) -> Iterator[Trouble]:
    if last is None or last.record is None or last.view.oid != claim.tip:
        return
    status = last.record.status
    if claim.place == "archive" and status not in ENDED:
        message = f"{claim.ref} is in the archive, and the thread has not ended: it is {status}"
        yield _trouble(claim, message, _MOVE.format(ACTIVE + claim.thread, claim.tip, claim.ref))
    elif claim.place == "active" and status in ENDED:
        message = f"{claim.ref} is active, and the thread has ended: it is {status}"
        yield _trouble(claim, message, _MOVE.format(ARCHIVE + claim.thread, claim.tip, claim.ref))


def _owner(claim: Claim, history: History, behind: ThreadId | None) -> ThreadId:
    """Give the thread that the newest commits are of: another one only if both their ends say so.

    One trailer that lies is told of its commit; a ref that points elsewhere is told once.
    """
    newest = history.tip if history.commits else behind
    oldest = history.beginnings[0] if history.commits else behind
    return newest if newest is not None and newest == oldest else claim.thread


def _thread_of(point: Point | None) -> ThreadId | None:
    return None if point is None or point.record is None else point.record.thread


def _trouble(claim: Claim, message: str, hint: str, *, commit: Oid | None = None) -> Trouble:
    told = commit or claim.tip
    return Trouble(message, hint.format(commit=told), claim.ref, told)
