"""Split a thread into branches, and step these: the part of a step that plays no agent itself."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from uwf_git.agents.group import check_cancelled
from uwf_git.commands.caller import Caller
from uwf_git.commands.split.derived import draft_split
from uwf_git.commands.split.ending import find_split
from uwf_git.commands.split.family import list_branches
from uwf_git.commands.split.plan import find_container, plan_split
from uwf_git.commands.split.remake import read_split
from uwf_git.commands.step.branches import join_branches, settle_branches
from uwf_git.commands.step.record_turn import TurnInterrupted
from uwf_git.commands.turn.active_thread import ThreadNotActive, ThreadNotReady
from uwf_git.commands.turn.ancestors import BranchHeld
from uwf_git.commands.turn.begin_branch import begin_in, share_workdir
from uwf_git.commands.turn.decide import NextTurn
from uwf_git.commands.turn.isolated import AskedPlace, choose_place
from uwf_git.commands.turn.spending import find_steps_left
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result
from uwf_git.errors import AgentFailed, Conflict, Refused, UwfError
from uwf_git.model.names import ThreadId
from uwf_git.store.disk.file_lock import LockingUnsupported
from uwf_git.store.gc.unite import has_many_packs, unite_packs
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, advance_head, get_head
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_TICK_S = 0.05
_AT_REST = (BranchHeld, ThreadNotActive, ThreadNotReady)


class BranchStep(NamedTuple):
    """What a step did to one branch."""

    thread: ThreadId
    result: ThreadResult | None
    """The branch after it; None if it did not go on."""

    error: UwfError | None = None
    """Why it did not."""


StepBranch = Callable[[ThreadId], ThreadResult]


def split_thread(
    store: Store, seen: tuple[Head, Snapshot], turn: NextTurn, place: AskedPlace
) -> ThreadResult:
    """Record that the thread goes on in branches; the caller holds its lock.

    Raises:
        SplitRefused, Refused: there can be no such branches.
        Refused: they work apart, and its work directory does not allow that.
        HeadMoved: another process moved the head.
    """
    from uwf_git.commands.turn.flow import ask_container  # noqa: PLC0415 (most steps do not split)

    head, snapshot = seen
    container = find_container(snapshot, turn.at or "")
    asked = ask_container(snapshot, snapshot.get_present(), container)
    if container.policy.get("isolation"):
        from uwf_git.commands.worktree.make import note_origin  # noqa: PLC0415 (few branches work apart)

        source = choose_place(store, snapshot, place)
        note_origin(store, place.environ, head.thread, at=container.at, source=source)
    derived = draft_split(snapshot, plan_split(snapshot, container, asked))
    commit = derived.write(store)
    advance_head(store, head, commit)
    return build_thread_result(derived.new.record, said=derived.new.said, commit=commit)


def list_leaves(store: Store, tip: Snapshot) -> Iterator[ThreadId]:
    """Begin the branches below *tip* that have not begun, and list those that take steps.

    A branch that has split itself takes none until its own branches have ended: then it joins them.
    """
    branches = [each for each in list_branches(store, tip) if not each.has_ended]
    new = [each for each in branches if each.head is None]
    if new:
        # The plan of a split is as long as it has branches: make it once.
        found = read_split(find_split(tip))
        for each in new:
            begin_in(store, found, each.number)
            _unite(store)
    for thread in [each.child.thread for each in branches]:
        # It may have been fetched, and have none here.
        share_workdir(store, tip.record.thread, thread)
        inner = read_snapshot(store, get_head(store, thread).commit)
        below = list_leaves(store, inner) if inner.record.status == "split" else ()
        is_empty = True
        for leaf in below:
            is_empty = False
            yield leaf
        if is_empty and not get_head(store, thread).archived:
            yield thread


def step_branches(
    store: Store, caller: Caller, tip: Snapshot, step: StepBranch, *, jobs: int
) -> ThreadResult:
    """Step each branch below *tip* once, at most *jobs* at a time, and join what has ended.

    Returns:
        The thread, and in ``branches`` what each of them did, and what kept threads from joining.

    Raises:
        TurnInterrupted: Ctrl-C; the agents were stopped, and each attempt recorded.
        KeyboardInterrupt: Ctrl-C before an agent began.
    """
    told = _step_all(store, tip, step, jobs=jobs)
    thread = tip.record.thread
    joined: ThreadResult | None = None
    now = read_snapshot(store, get_head(store, thread).commit)
    for trunk in list(list_trunks(store, now)):
        try:
            settle_branches(store, caller, trunk)
            found = join_branches(store, caller, trunk)
            joined = found if trunk == thread else joined
        except (Refused, Conflict) as error:
            told.append(BranchStep(trunk, None, error))
    if joined is None:
        now = read_snapshot(store, get_head(store, thread).commit)
        said = now.subject.partition(": ")[2]
        joined = build_thread_result(now.record, said=said, commit=now.commit.oid)
    return joined._replace(branches=tuple(told))


def _step_all(store: Store, tip: Snapshot, step: StepBranch, *, jobs: int) -> list[BranchStep]:
    """Step each branch below *tip* once, at most *jobs* at a time; raise as ``step_branches``."""
    from uwf_git.commands.step.at_once import run_at_once  # noqa: PLC0415 (most steps have no branches)

    room = _Room(store, tip.record.thread)
    interrupted: list[TurnInterrupted] = []

    def take(thread: ThreadId) -> BranchStep:
        try:
            with room.enter():
                return BranchStep(thread, step(thread))
        except UwfError as error:
            if isinstance(error, TurnInterrupted):
                interrupted.append(error)
            return BranchStep(thread, None, error)
        finally:
            _unite(store)

    try:
        return run_at_once(take, list(list_leaves(store, tip)), jobs=jobs)
    except KeyboardInterrupt:
        if not interrupted:
            raise
        # It says more, and what to type is said of the thread that was named.
        again = f"`uwf thread step {tip.record.thread}` tries again"
        interrupted[0].hint = f"nothing was lost: {again}"
        raise interrupted[0] from None


class _Room:
    """Lets no more branches of a thread take steps at once than it may still take."""

    def __init__(self, store: Store, thread: ThreadId) -> None:
        self._store, self._thread = store, thread
        self._changed = threading.Condition()
        self._under_way = 0

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Hold a place; wait for one while others that are under way may take all of them."""
        with self._changed:
            while self._under_way and not self._has_place():
                self._changed.wait(_TICK_S)
                check_cancelled()
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def _has_place(self) -> bool:
        left = find_steps_left(self._store, self._thread)
        return left is None or self._under_way < left


def check_branches(stepped: ThreadResult) -> None:
    """Raise why a branch did not go on; a failed agent comes before a busy thread.

    A branch that waits, is paused or has ended meanwhile is no failure of the step.

    Raises:
        AgentFailed, Conflict, Refused: what kept the first such branch from going on.
    """
    errors = [each.error for each in stepped.branches if each.error is not None]
    for kind in (AgentFailed, Conflict, UwfError):
        for error in errors:
            if isinstance(error, kind) and not isinstance(error, _AT_REST):
                raise error


def _unite(store: Store) -> None:
    """Unite small packs if that is due: each branch writes some, and all read them."""
    # On an error whoever follows tries again.
    with suppress(OSError, LockingUnsupported):
        if has_many_packs(store.path):
            unite_packs(store)


def list_trunks(store: Store, tip: Snapshot) -> Iterator[ThreadId]:
    """List the threads from *tip* down that have split and not joined, the deepest first."""
    if tip.record.status != "split":
        return
    for branch in list_branches(store, tip):
        if branch.head is not None and not branch.has_ended:
            yield from list_trunks(store, read_snapshot(store, branch.head.commit))
    yield tip.record.thread
