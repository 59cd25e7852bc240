"""Branches and the threads that they belong to, as they are in this store."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, pairwise
from typing import NamedTuple

from uwf_git.commands.split import (
    SplitRefused,
    check_children,
    find_container,
    find_in_flow,
    find_split,
    label_branch,
    read_entry,
    walk_back,
)
from uwf_git.errors import Conflict, Refused, StoreDamaged
from uwf_git.model.names import Oid, ThreadId, read_time_ms
from uwf_git.model.thread import ENDED, Child
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, find_head
from uwf_git.store.threads.history import (
    Snapshot,
    find_tip,
    read_at,
    read_snapshot,
    read_trunk,
    walk_history,
    walk_trunks,
)
from uwf_git.store.threads.local_files import find_driver, find_holder, is_being_stopped

STRANGER_HINT = (
    "`uwf thread fork` of the thread, at a commit before the split, splits into branches of other "
    "ids, and `uwf thread fork` of the branch keeps what it did"
)

_DAY_MS = 24 * 60 * 60 * 1000


def strange_branch(problem: str) -> Conflict:
    return Conflict(problem, code="strange-branch", hint=STRANGER_HINT)


class Branch(NamedTuple):
    number: int
    child: Child
    head: Head | None
    """None: nobody has begun it here."""

    @property
    def has_ended(self) -> bool:
        return self.head is not None and self.head.archived


def list_branches(store: Store, split: Snapshot) -> list[Branch]:
    """List the branches that the thread at *split* has now; none if it has not split."""
    found = split.get_present().split
    if found is None:
        return []
    check_children(split, found)
    return [
        Branch(number, child, find_head(store, child.thread))
        for number, child in enumerate(found.children)
    ]


def find_ends(store: Store, tip: Snapshot) -> list[Head] | None:
    split = tip.get_present().split
    if tip.record.status != "split" or split is None:
        return None
    heads: list[Head] = []
    # Those that have not ended are mostly the last: one look-up tells.
    for child in reversed(split.children):
        head = find_head(store, child.thread)
        if head is None or not head.archived:
            return None
        heads.append(head)
    return heads[::-1]


def walk_descendants(store: Store, tip: Snapshot) -> Iterator[tuple[Head, Snapshot]]:
    """Yield the branches below *tip* that have begun here and are not joined, parents first."""
    for branch in list_branches(store, tip):
        if branch.head is not None:
            inner = read_snapshot(store, branch.head.commit)
            yield branch.head, inner
            yield from walk_descendants(store, inner)


def list_joined(store: Store, commit: Oid, *, through_forks: bool = False) -> set[Oid]:
    """List the ends of the branches that the history of *commit* has joined, and of theirs."""
    found: set[Oid] = set()
    waiting = [commit]
    while waiting:
        with suppress(StoreDamaged):
            for snapshot in walk_history(store, waiting.pop(), through_forks=through_forks):
                joined = snapshot.commit.parents[1:] if snapshot.record.event == "join" else ()
                found.update(joined)
                waiting += joined
    return found


def name_branch(store: Store, thread: ThreadId) -> str:
    """Return a branch's name for people, with the numbers around it (``1.0 tester``); else ""."""
    numbers: list[str] = []
    label = ""
    tip = find_tip(store, thread)
    for at, trunk in pairwise([] if tip is None else [tip, *walk_trunks(store, tip)]):
        found = _find_number(trunk, at)
        if found is None:
            break
        numbers.append(str(found[0]))
        label = label or found[1]
    return f"{'.'.join(reversed(numbers))} {label}".strip()


def find_number(store: Store, thread: ThreadId) -> tuple[int, str] | None:
    """Return the number and the label of a branch, joined or not; None if it is not known here."""
    tip = find_tip(store, thread)
    if tip is None or tip.record.parent_thread is None:
        return None
    return _find_number(_find_split(store, tip), tip)


def _find_number(split: Snapshot, branch: Snapshot) -> tuple[int, str] | None:
    found = split.get_present().split
    children = [] if found is None else [child.thread for child in found.children]
    if found is None or branch.record.thread not in children:
        return None
    number = children.index(branch.record.thread)
    return number, label_branch(find_container(split, found.at), number, branch)


def list_present_descendants(store: Store, thread: ThreadId) -> Iterator[ThreadId]:
    """Yield the branches that *thread* has here now, each before its own branches."""
    head = find_head(store, thread)
    try:
        branches = [] if head is None else list_branches(store, read_snapshot(store, head.commit))
    except StoreDamaged:
        return
    for branch in branches:
        if branch.head is not None:
            yield branch.child.thread
            yield from list_present_descendants(store, branch.child.thread)


class Strangers:
    """Finds branches that began at another split than where their thread stands; reads each once.

    A branch has the same id wherever its thread splits after the same commit. *find* gives the
    commits of a thread, of which some may be None.
    """

    def __init__(
        self, objects: ObjectStore, find: Callable[[ThreadId], Iterable[Oid | None]]
    ) -> None:
        self._objects, self._find = objects, find
        self._known: dict[Oid, tuple[Oid, frozenset[ThreadId]] | None] = {}

    def find(self, thread: ThreadId, tip: Oid, *, is_known: bool) -> str | None:
        """Judge *thread* at *tip* as it comes; if it *is_known*, it was judged as a branch then."""
        return self.find_below(tip) or (None if is_known else self._find_above(thread, tip))

    def find_below(self, tip: Oid) -> str | None:
        branches = (self._read_split(tip) or ("", ()))[1]
        pairs = ((each, commit) for each in sorted(branches) for commit in self._find(each))
        return next(filter(None, (self._judge(tip, *pair) for pair in pairs)), None)

    def _find_above(self, branch: ThreadId, commit: Oid) -> str | None:
        with suppress(StoreDamaged):
            trunk = read_at(self._objects, commit).get_trunk()
            tips = () if trunk is None else filter(None, self._find(trunk))
            return next(filter(None, (self._judge(tip, branch, commit) for tip in tips)), None)
        return None  # the content of the commit is checked by others

    def _judge(self, tip: Oid, branch: ThreadId, commit: Oid | None) -> str | None:
        split, branches = self._read_split(tip) or ("", ())
        if commit is None or branch not in branches:
            return None
        if is_descendant(self._objects, commit, Oid(split)):
            return None
        return f"branch {branch} at {commit} did not begin at {split}, where its thread has split"

    def _read_split(self, tip: Oid) -> tuple[Oid, frozenset[ThreadId]] | None:
        if tip not in self._known:
            self._known[tip] = None
            # Others report what cannot be read.
            with suppress(SplitRefused, StoreDamaged):
                snapshot = read_at(self._objects, tip)
                split = snapshot.get_present().split
                if split is not None:
                    branches = frozenset(child.thread for child in split.children)
                    self._known[tip] = find_split(snapshot).commit.oid, branches
        return self._known[tip]


class Family:
    """Knows *root* and all branches below, joined or not, by the threads that branches name."""

    def __init__(self, store: Store, root: ThreadId) -> None:
        self._store, self.root = store, root
        self._known: dict[ThreadId, bool] = {root: True}
        self._parents: dict[ThreadId, ThreadId | None] = {}
        # The id of a branch has the date of its parent's newest commit; clocks differ.
        self._oldest_ms = read_time_ms(root) - _DAY_MS

    def __contains__(self, thread: ThreadId) -> bool:
        if thread in self._known:
            return self._known[thread]
        # Checked first, since a store may have many threads, and most are older.
        if read_time_ms(thread) < self._oldest_ms:
            return False
        with suppress(StoreDamaged):
            tip = find_tip(self._store, thread)
            # Who is not here may come: only what was read is kept.
            return tip is not None and self._note(tip)
        # It names no thread that can be read, but a split may list it.
        return thread in list_present_descendants(self._store, self.root)

    def has_started(self, thread: ThreadId, asked: frozenset[ThreadId] = frozenset()) -> bool:
        """Return whether its agents, or theirs, started *thread*, and nobody runs it here."""
        if thread in asked or read_time_ms(thread) < self._oldest_ms:
            return False
        if find_driver(self._store, thread) or find_holder(self._store, thread):
            return False
        if thread not in self._parents:
            # Read once: a store may have many threads that nobody has pushed.
            with suppress(StoreDamaged):
                tip = find_tip(self._store, thread)
                self._parents[thread] = None if tip is None else tip.record.parent_thread
        parent = self._parents.get(thread)
        return parent is not None and (parent in self or self.has_started(parent, asked | {thread}))

    def _note(self, snapshot: Snapshot) -> bool:
        thread, trunk = snapshot.record.thread, snapshot.get_trunk()
        # Forged threads may be branches of each other.
        self._known.setdefault(thread, False)
        if trunk is not None and trunk not in self._known:
            # A fetch may bring a branch before the thread around it: its commits are behind it.
            self._note(find_tip(self._store, trunk) or _find_split(self._store, snapshot))
        self._known[thread] = trunk is not None and self._known.get(trunk, False)
        return self._known[thread]


def count_steps_before(store: Store, snapshot: Snapshot) -> tuple[int, ...]:
    """Count the steps before a branch began, of each thread around, outwards."""
    counts: list[int] = []
    while "entry" in snapshot.get_start().payload:
        snapshot = _find_split(store, snapshot)
        counts.append(snapshot.record.depth)
    return tuple(counts)


def count_visits_before(store: Store, snapshot: Snapshot) -> int:
    """Count the visits that a branch has taken over from the thread that split."""
    if "entry" not in snapshot.get_start().payload:
        return 0
    return sum(_find_split(store, snapshot).get_present().visits.values())


def _find_split(store: Store, snapshot: Snapshot) -> Snapshot:
    trunk = found = None
    # The split lies behind the branch's own commits, too.
    with suppress(StoreDamaged):
        trunk = read_trunk(store, snapshot)
        found = None if trunk is None else trunk.get_present().split
    if trunk and found and snapshot.record.thread in {child.thread for child in found.children}:
        # It takes no step before it joins, so the walk below can be saved.
        return trunk
    start = walk_back(snapshot, "start")
    return read_at(start.objects, start.commit.parents[0])


def find_isolation(snapshot: Snapshot) -> str | None:
    """Return where its trunk split, if each of the branches there has a worktree of its own."""
    # Most threads are no branches, and nothing is read for them.
    entry = None if snapshot.record.parent_thread is None else read_entry(snapshot)
    if entry is None:
        return None
    container = entry.up if entry.turn is None else entry.without_turn()
    found = None if container is None else find_in_flow(snapshot, str(container))
    if found is None:
        return None
    fields = found[0].nodes[found[1].place].fields
    return str(container) if fields.get("isolation") == "worktree" else None


def find_owner(store: Store, snapshot: Snapshot) -> Snapshot | None:
    """Return whose worktree the thread works in: its own tip, or the tip of a thread around it."""
    around = chain([snapshot], walk_trunks(store, snapshot))
    return next((each for each in around if find_isolation(each) is not None), None)


# The threads above a branch: whether they let it go on.


class BranchHeld(Refused):
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
    thread = snapshot.record.thread
    for trunk in walk_trunks(store, snapshot):
        parent, status = trunk.record.thread, str(trunk.record.status)
        found = trunk.get_present().split
        if status in ENDED or is_being_stopped(store, parent):
            problem = f"is {status}" if status in ENDED else "is being ended"
            status, hint = "killed", "`uwf thread show {parent}` tells by whom"
        elif status == "paused":
            problem = "is paused"
            hint = "`uwf thread resume {parent}` lets its branches go on"
        elif found is None or thread not in {child.thread for child in found.children}:
            status, problem = "joined", "goes on without it"
            hint = "`uwf thread fork {thread}` continues it in a new thread"
        else:
            thread = parent
            continue
        raise BranchHeld(thread, parent, status, problem=problem, hint=hint)
