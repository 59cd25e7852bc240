"""Walk a history along first parents, through forks, and collect its commit ids, nothing else."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from uwf_git.commands.verify.finding import Finding
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.commit import CommitView, read_commit
from uwf_git.store.objects.message import BadMessage, OldFormat, parse_trailers
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.objects.walk import is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head
from uwf_git.store.threads.message import parse_thread_message

_FORK = b"\nUwf-Event: fork\n"
# Of a branch, whose thread begins at a commit of another thread.
_START = b"\nUwf-Event: start\n"


class History(NamedTuple):
    commits: list[Oid]
    """The newest first."""

    behind: Oid | None
    """The trusted commit before the oldest of them, or None."""

    damage: StoreDamaged | None
    """Why the walk stopped before the beginning; None if it did not."""

    forks: dict[Oid, ThreadId | None]

    beginnings: list[ThreadId | None]
    """The thread that the oldest commit of each thread on the way names, newest first."""

    tip: ThreadId | None
    """The thread that the newest commit names; None if its message cannot be read."""


def walk_back(
    objects: ObjectStore,
    tip: Oid,
    trusted: Container[Oid | None],
    is_shared: Callable[[Oid], bool] = lambda _oid: False,
    seen: Container[Oid] = (),
) -> History:
    """Walk back to a *trusted* or *seen* commit, or the start; *is_shared* is for forks."""
    commits: list[Oid] = []
    forks: dict[Oid, ThreadId | None] = {}
    beginnings: list[ThreadId | None] = []
    damage: StoreDamaged | None = None
    first: CommitView | None = None
    view: CommitView | None = None
    oid: Oid | None = tip
    while oid is not None and oid not in trusted and oid not in seen:
        try:
            view = read_commit(objects, oid)
        except StoreDamaged as error:
            damage, oid = error, None
            break
        commits.append(oid)
        first = first or view
        if _FORK in view.message or (_START in view.message and view.parents):
            forks[oid] = thread_of(view)
            beginnings.append(thread_of(view))
        oid = view.parents[0] if view.parents else None
        if oid is not None and commits[-1] in forks and is_shared(oid):
            break
    if view is not None and (not commits or commits[-1] not in forks):
        beginnings.append(thread_of(view))
    tip_thread = None if first is None else thread_of(first)
    return History(commits, oid, damage, forks, beginnings, tip_thread)


def check_end(
    objects: ObjectStore,
    history: History,
    target: tuple[str, Oid],
    known: Oid | None,
    hints: tuple[str, str],
) -> Iterator[Finding]:
    """Check that *history* reaches its start or *known*; *hints*: for a gap, for another."""
    (ref, tip), damage = target, history.damage
    if damage is not None:
        oid = damage.facts.get("commit") or damage.facts.get("object")
        message = f"the history of {ref} breaks off: {damage.message}"
        yield Finding(message, (damage.hint or hints[0]).format(commit=oid or tip), ref, oid or tip)
    elif known is not None and known != history.behind and not is_descendant(objects, tip, known):
        yield Finding(f"{tip} does not descend from {known}, where {ref} was", hints[1], ref, tip)


def find_old_format(objects: ObjectStore, ref: str, tip: Oid) -> Finding | None:
    """Return that *ref* has a format that is not read any more; None if it has not."""
    try:
        parse_trailers(read_commit(objects, tip).message)
    except OldFormat as error:
        told = error.of_commit(tip)
        return Finding(f"the history cannot be checked: {told.message}", error.hint or "", ref, tip)
    except StoreDamaged:
        return None
    return None


def thread_of(view: CommitView) -> ThreadId | None:
    try:
        return parse_thread_message(view.message).thread
    except BadMessage:
        return None


class KnownHeads:
    def __init__(self, objects: ObjectStore, find: Callable[[ThreadId], Oid | None]) -> None:
        self._objects, self.find = objects, find
        self._known: dict[Oid, bool] = {}
        self._trusted: set[Oid] = set()

    def trust(self, tip: Oid) -> None:
        """Count the history of *tip* as well: it was checked."""
        self._trusted.update(walk_back(self._objects, tip, (), self.has, self._trusted).commits)

    def has(self, oid: Oid) -> bool:
        if oid in self._trusted:
            return True
        if oid not in self._known:
            self._known[oid] = self._find(oid)
        return self._known[oid]

    def _find(self, oid: Oid) -> bool:
        try:
            thread = thread_of(read_commit(self._objects, oid))
        except StoreDamaged:
            return False
        tip = None if thread is None else self.find(thread)
        return tip is not None and is_descendant(self._objects, tip, oid)


def heads_of_store(store: Store, more: Mapping[ThreadId, Oid] | None = None) -> KnownHeads:
    """Return the sound heads of the threads of *store*, and those of *more* on demand."""

    def find(thread: ThreadId) -> Oid | None:
        if more is not None and thread in more:
            return more[thread]
        try:
            head = find_head(store, thread)
        except StoreDamaged:
            return None
        return None if head is None else head.commit

    return KnownHeads(store.objects, find)


def heads_of_refs(objects: ObjectStore, refs: Mapping[str, Oid]) -> KnownHeads:
    return KnownHeads(
        objects, lambda thread: refs.get(ARCHIVE + thread) or refs.get(ACTIVE + thread)
    )


def list_beginnings(
    objects: ObjectStore, tips: Iterable[Oid], had: Container[Oid], heads: KnownHeads
) -> set[Oid]:
    found: set[Oid] = set()
    seen: set[Oid] = set()
    for tip in tips:
        history = walk_back(objects, tip, had, heads.has, seen)
        seen.update(history.commits)
        behind = history.behind
        if behind is not None and behind not in had and behind not in seen:
            found.add(behind)
    return found
