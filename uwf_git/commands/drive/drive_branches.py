"""Drive the branches of a thread: all of them at once, a few at a time, down to the deepest.

A worker drives one thread until that stops; whether it split, ended or failed decides here what
comes next. Workers are threads of Python: what they wait for is agents.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from uwf_git.agents.group import cancellable, wait_for_one
from uwf_git.commands.caller import Caller
from uwf_git.commands.drive.drive_thread import Drive, Driven, Watcher
from uwf_git.commands.step.branches import join_branches, list_leaves, list_trunks, settle_branches
from uwf_git.commands.step.record_turn import TurnFailed, TurnInterrupted
from uwf_git.commands.turn.limits import find_steps_left
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED, Waiting
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, get_head
from uwf_git.store.threads.lock import ThreadBusy, lock_drive
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_TICK_S = 0.05

# Why a drive ends, if branches stop for several reasons.
_GRAVEST = ("failed", "refused", "limit", "until", "paused", "waiting", "killed")


class BranchStop(NamedTuple):
    """Why a branch goes on no further in this drive."""

    thread: ThreadId
    stopped: str
    """As ``Driven.stopped``; ``refused`` with an *error*."""

    error: UwfError | None = None


Work = Callable[[ThreadId, Callable[[], bool]], str]
"""Drives one thread alone until it stops; the second argument says whether to begin no more steps.

Returns ``Driven.stopped``.
"""


OnJoin = Callable[[ThreadResult], None]
"""Called when branches were joined, with the thread that had split."""


class Closing(Exception):
    """A drive begins no more steps, and wakes the branches that sleep."""


class BranchDriver:
    """Drives the branches below one thread."""

    def __init__(
        self, store: Store, caller: Caller, work: Work, *, jobs: int, on_join: OnJoin
    ) -> None:
        self._store, self._caller, self._work = store, caller, work
        self._jobs, self._on_join = jobs, on_join
        self._cancelled = threading.Event()
        self._is_closing = threading.Event()
        self._settling = threading.Lock()
        self._pending: dict[Future[str], ThreadId] = {}
        self._stops: list[BranchStop] = []
        self.is_idle = True
        """Nothing could be done: other processes have all of it."""

    def run(self, root: ThreadId) -> list[BranchStop]:
        """Drive until *root* has joined its branches, or none of them can go on.

        Returns:
            Why branches stopped, and why threads could not join theirs; empty if all were joined.

        Raises:
            KeyboardInterrupt: Ctrl-C; all agents were stopped and their attempts recorded.
        """
        with ThreadPoolExecutor(max_workers=self._jobs) as pool:
            try:
                for trunk in list(list_trunks(self._store, self._read(root))):
                    self._settle(pool, root, trunk)
                self._go_on_with(pool, root, root)
                while self._pending:
                    for future in wait_for_one(self._pending):
                        self._after(pool, root, self._pending.pop(future), future)
            except BaseException:
                self._is_closing.set()
                self._cancelled.set()
                pool.shutdown(wait=True, cancel_futures=True)
                self._raise_interrupted()
                raise
        # One that has ended since holds nobody: another branch was enough, or a person ended it.
        return [each for each in self._stops if not self._has_ended(each.thread)]

    def check_open(self) -> None:
        """Check that a branch may go on sleeping.

        Raises:
            KeyboardInterrupt: Ctrl-C.
            Closing: no more steps begin.
        """
        if self._cancelled.is_set():
            raise KeyboardInterrupt
        if self._is_closing.is_set():
            raise Closing

    def _raise_interrupted(self) -> None:
        """Raise what tells of an agent that was interrupted, if one was: it has more to say."""
        for future in self._pending:
            error = None if future.cancelled() else future.exception()
            if isinstance(error, TurnInterrupted):
                raise error

    def _go_on_with(self, pool: ThreadPoolExecutor, root: ThreadId, thread: ThreadId) -> None:
        """Drive every branch below *thread* that has not ended."""
        for leaf in list(list_leaves(self._store, self._read(thread))):
            self._submit(pool, root, leaf)

    def _submit(self, pool: ThreadPoolExecutor, root: ThreadId, thread: ThreadId) -> None:
        if not self._is_closing.is_set() and thread not in self._pending.values():
            self.is_idle = False
            self._pending[pool.submit(self._drive, root, thread)] = thread

    def _drive(self, root: ThreadId, thread: ThreadId) -> str:
        head = find_head(self._store, thread)
        if head is None or head.archived:
            # It was ended while it waited for its turn.
            return "killed"
        with cancellable(self._cancelled):
            try:
                stopped = self._work(thread, self._is_closing.is_set)
            except Closing:
                return "max-steps"
            if stopped == "failed" and self._is_given_up(root, thread):
                return "killed"
        if stopped in {"failed", "until", "limit"}:
            # Before the pool takes the next thread: what is under way finishes its step.
            self._is_closing.set()
        return stopped

    def _is_given_up(self, root: ThreadId, thread: ThreadId) -> bool:
        """Give a failed branch up, or one around it, if a container says so; return whether."""
        with self._settling:
            trunk = self._read(thread).get_trunk()
            while trunk is not None and not self._has_ended(thread):
                settle_branches(self._store, self._caller, trunk)
                trunk = None if trunk == root else self._read(trunk).get_trunk()
        return self._has_ended(thread)

    def _has_ended(self, thread: ThreadId) -> bool:
        return get_head(self._store, thread).archived

    def _after(
        self, pool: ThreadPoolExecutor, root: ThreadId, thread: ThreadId, future: Future[str]
    ) -> None:
        """Decide what follows when *thread* has stopped."""
        try:
            stopped = future.result()
        except UwfError as error:
            self._stops.append(BranchStop(thread, "refused", error))
            return
        if stopped == "split":
            self._settle(pool, root, thread)
            self._go_on_with(pool, root, thread)
            return
        trunk = self._read(thread).get_trunk()
        while trunk is not None and trunk != root and self._has_ended(trunk):
            # It was given up itself.
            trunk = self._read(trunk).get_trunk()
        if trunk is None:
            return
        self._settle(pool, root, trunk, may_have_failed=stopped != "end")
        if stopped not in {"end", "killed"}:
            self._stops.append(BranchStop(thread, stopped))

    def _settle(
        self,
        pool: ThreadPoolExecutor,
        root: ThreadId,
        trunk: ThreadId,
        *,
        may_have_failed: bool = True,
    ) -> None:
        """End the branches of *trunk* that are given up, and join them if all have ended.

        Why it cannot be joined is kept for the end: the work of other branches goes on.
        """
        try:
            with self._settling:
                settle_branches(self._store, self._caller, trunk, may_have_failed=may_have_failed)
            joined = join_branches(self._store, self._caller, trunk)
        except ThreadBusy:
            # Another process joins them.
            return
        except UwfError as error:
            self._stops.append(BranchStop(trunk, "refused", error))
            return
        if joined is not None:
            self.is_idle = False
            self._on_join(joined)
            if trunk != root:
                self._submit(pool, root, trunk)

    def _read(self, thread: ThreadId) -> Snapshot:
        return read_snapshot(self._store, get_head(self._store, thread).commit)


def drive_branches(drive: Drive) -> Driven | None:
    """Drive the branches of the thread of *drive* until they are joined; None if they are.

    Returns:
        Why the drive ends, if none of them can go on.

    Raises:
        MergeConflict, Refused: the branches cannot be joined.
        ThreadBusy: another process works on the last of them.
        What ``BranchDriver.run`` and steps of branches raise.
    """
    return _TreeDrive(drive).run()


class _TreeDrive:
    """The branches of one drive: what they report, and why they stopped."""

    def __init__(self, drive: Drive) -> None:
        self._drive = drive
        self._stopped: dict[ThreadId, Driven] = {}
        self._one_at_a_time = threading.Lock()
        self._at_work: set[ThreadId] = set()
        self._driver = BranchDriver(
            drive.store,
            drive.caller,
            self._drive_branch,
            on_join=self._watcher(None).on_step,
            jobs=drive.request.step.jobs,
        )

    def run(self) -> Driven | None:
        drive = self._drive
        stops = self._driver.run(drive.thread)
        if drive.read_status() in {"paused", *ENDED}:
            # It was steered meanwhile, which stopped its branches: the drive finds that.
            return None
        if any(each.stopped != "max-steps" for each in stops):
            return self._tell(stops)
        if drive.is_at_max_steps():
            return drive.stop("max-steps")
        if self._driver.is_idle:
            drive.request.sleep(_TICK_S)
        return None

    def _drive_branch(self, thread: ThreadId, is_closing: Callable[[], bool]) -> str:
        """Drive one branch alone, in a thread of Python of its own."""
        outer = self._drive

        def is_over() -> bool:
            return is_closing() or not self._may_begin(thread)

        request = outer.request._replace(
            step=outer.request.step._replace(thread=thread, is_driven=True),
            max_steps=None,
            sleep=self._sleep,
            is_branch=True,
            is_over=is_over,
        )
        try:
            with lock_drive(outer.store, thread, since_ms=outer.caller.now_ms()) as lock:
                driven = Drive(
                    outer.store, outer.caller, request, self._watcher(thread), lock
                ).run()
        finally:
            with self._one_at_a_time:
                self._at_work.discard(thread)
        self._stopped[thread] = driven
        return driven.stopped

    def _may_begin(self, thread: ThreadId) -> bool:
        """Return whether *thread* may take a step: those under way count for the most steps."""
        drive, most = self._drive, self._drive.request.max_steps
        with self._one_at_a_time:
            under_way = len(self._at_work - {thread})
            if most is not None and drive.steps + drive.stopped_turns + under_way >= most:
                return False
            left = find_steps_left(drive.store, drive.thread) if under_way else None
            if left is not None and under_way >= left:
                # When they have ended, there is room, or the limit is reached.
                return False
            self._at_work.add(thread)
            return True

    def _sleep(self, seconds: float) -> None:
        """Sleep, unless the drive is to end or the thread was steered."""
        self._driver.check_open()
        if self._drive.read_status() != "split":
            raise Closing
        self._drive.request.sleep(seconds)

    def _watcher(self, thread: ThreadId | None) -> Watcher:
        """Return the watcher of a branch: one call at a time, and its steps count."""
        outer = self._drive

        def on_step(stepped: ThreadResult) -> None:
            with self._one_at_a_time:
                if thread is not None:
                    self._at_work.discard(thread)
                outer.steps += stepped.role is not None and stepped.status != "waiting"
                outer.watcher.on_step(stepped)

        def on_retry(failure: TurnFailed, seconds: float) -> None:
            with self._one_at_a_time:
                outer.watcher.on_retry(failure, seconds)

        def on_wait(waiting: Waiting) -> None:
            with self._one_at_a_time:
                outer.watcher.on_wait(waiting)

        return Watcher(on_step, on_retry, on_wait)

    def _tell(self, stops: list[BranchStop]) -> Driven:
        """Return why the drive ends, by the gravest of the reasons of its branches."""
        drive = self._drive
        for stopped in _GRAVEST:
            found = next((each for each in stops if each.stopped == stopped), None)
            if found is None:
                continue
            if found.error is not None:
                raise found.error
            inner = self._stopped[found.thread]
            told = drive.stop(inner.stopped, failure=inner.failure)
            return told._replace(waiting=inner.waiting)
        return drive.stop("max-steps")
