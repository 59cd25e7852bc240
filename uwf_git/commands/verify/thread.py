"""Check a thread: its ref, and each commit of its history, oldest first.

One walk back collects the ids; then each commit is read once, and of its tree only what differs
from the one before. Nothing is written; damage is a finding.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from uwf_git.commands.split.commits import SplitRefused, find_split
from uwf_git.commands.verify.commit import CommitChecks, Point
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.history import (
    History,
    KnownHeads,
    check_end,
    find_old_format,
    walk_back,
)
from uwf_git.commands.verify.tree import TreeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED
from uwf_git.store.objects.walk import is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.snapshot import read_at

RefKind = Literal["active", "archive", "kept"]

_FOREIGN = (
    "see it with `git log {commit}`; another copy of this store knows where the thread is: "
    "`git fetch`"
)
_REWRITTEN = (
    "history is never rewritten: fetch, go on from the newest commit, and push that; "
    "`uwf thread fork` makes a thread of its own of what differs"
)
_FORGED_JOIN = (
    "`uwf fetch` shows both sides; `git log {commit}` shows what was joined: branches are never "
    "replaced, and `uwf thread fork` continues one of another history"
)
_MOVE = "`git update-ref {} {}` and `git update-ref -d {}` move it"


class Claim(NamedTuple):
    ref: str
    thread: ThreadId
    tip: Oid
    place: RefKind
    split: Oid | None = None
    """Of a branch that another thread joins: where it must have begun."""

    is_own: bool = True
    """Of a branch: the thread of the ref joins the branch, not its fork's origin."""


def check_thread(
    store: Store, thread: ThreadId, tip: Oid, *, archived: bool, known: Oid | None = None
) -> Iterator[Finding]:
    place: RefKind = "archive" if archived else "active"
    ref = (ARCHIVE if archived else ACTIVE) + thread
    checks = ThreadChecks(TreeChecks(store))
    yield from checks.check(Claim(ref, thread, tip, place), known=known)
    yield from checks.finish()


class ThreadChecks:
    """The threads of one run; what two of them share is checked once.

    With *heads*, what threads share with those refs is trusted: it was checked when it came.
    *judge* says what else is wrong with a branch that a thread joins; it is not asked of what a
    fork shares with the thread that it was forked from.
    """

    def __init__(
        self,
        trees: TreeChecks,
        heads: KnownHeads | None = None,
        judge: Callable[[Claim], str | None] | None = None,
    ) -> None:
        self._objects, self._trees = trees.recent, trees
        self._heads, self._judge = heads, judge
        self._seen: set[Oid] = set()
        self._believed: tuple[Oid, Point | None] | None = None

    def check(self, claim: Claim, *, known: Oid | None = None) -> Iterator[Finding]:
        """Check the history of *claim* and branches it joins; some findings come at ``finish``."""
        old = find_old_format(self._objects, claim.ref, claim.tip)
        if old is not None:
            yield old
            return
        waiting = [(claim, known)]
        while waiting:
            each, last = waiting.pop()
            for joined in self._check_one(each, last):
                if isinstance(joined, Finding):
                    yield joined
                else:
                    waiting.append((joined, None))

    def _check_one(self, claim: Claim, known: Oid | None) -> Iterator[Finding | Claim]:
        """Check one thread; yield the branches that it joins as well."""
        heads = self._heads
        here = None if heads is None else heads.find(claim.thread)
        history = walk_back(
            self._objects,
            claim.tip,
            # The split comes before the join, so it was checked, or is trusted.
            {known, here, claim.split},
            (lambda _oid: False) if heads is None else heads.has,
            self._seen,
        )
        target, hints = (claim.ref, claim.tip), (_FOREIGN, _REWRITTEN)
        yield from check_end(self._objects, history, target, known, hints)
        split = claim.split
        if (
            split is not None
            and split != history.behind
            and not is_descendant(self._objects, claim.tip, split)
        ):
            problem = f"it did not begin at {split}, where the thread split"
            yield _bad_join(claim, claim.thread, claim.tip, problem)
        commits = CommitChecks(self._trees, claim.ref)
        if history.behind is not None:
            self._believe(commits, history.behind)
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
        is_judged = True
        for oid in reversed(history.commits):
            if oid in history.forks and oid != oldest:
                owners.pop()
            is_first = has_beginning and oid == oldest
            yield from commits.check(oid, owners[-1], is_first=is_first)
            is_own = claim.is_own and owners[-1] == claim.thread
            if commits.is_sound and commits.before is not None:
                for found in self._find_joined(claim, commits.before, is_own=is_own):
                    is_judged &= is_own or self._judge is None
                    yield found
            if is_judged or is_own:
                # Else the thread itself may come in the same push, and is judged then.
                self._seen.add(oid)
        yield from _check_status(claim, commits.before)

    def _believe(self, commits: CommitChecks, oid: Oid) -> None:
        """Take *oid* as the commit before; of many branches one after the other it is the same."""
        if self._believed is None or self._believed[0] != oid:
            commits.believe(oid)
            self._believed = (oid, commits.before)
        commits.before = self._believed[1]

    def _find_joined(
        self, claim: Claim, point: Point, *, is_own: bool
    ) -> Iterator[Finding | Claim]:
        """Yield the branches that the sound commit at *point* joins, if any, and their troubles."""
        if point.record is None or point.record.event != "join":
            return
        try:
            split = find_split(read_at(self._objects, point.view.parents[0])).commit.oid
        except (SplitRefused, StoreDamaged) as error:
            yield _trouble(claim, error.message, _FOREIGN, commit=point.view.oid)
            return
        for oid in point.view.parents[1:]:
            thread = read_at(self._objects, oid).record.thread
            joined = Claim(claim.ref, thread, oid, "kept", split, is_own)
            problem = self._judge(joined) if is_own and self._judge is not None else None
            if problem is not None:
                yield _bad_join(claim, joined.thread, oid, problem)
            yield joined

    def finish(self) -> Iterator[Finding]:
        yield from self._trees.nodes.finish()


def _bad_join(claim: Claim, branch: ThreadId, tip: Oid, problem: str) -> Finding:
    message = f"the join of branch {branch} at {tip} cannot be: {problem}"
    return _trouble(claim, message, _FORGED_JOIN, commit=tip)


def _check_status(claim: Claim, last: Point | None) -> Iterator[Finding]:
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
    """Return the thread of the newest commits: another than the ref's only if both ends name it."""
    newest = history.tip if history.commits else behind
    oldest = history.beginnings[0] if history.commits else behind
    return newest if newest is not None and newest == oldest else claim.thread


def _thread_of(point: Point | None) -> ThreadId | None:
    return None if point is None or point.record is None else point.record.thread


def _trouble(claim: Claim, message: str, hint: str, *, commit: Oid | None = None) -> Finding:
    told = commit or claim.tip
    return Finding(message, hint.format(commit=told), claim.ref, told)
