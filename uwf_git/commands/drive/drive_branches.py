"""Drive the branches of a thread: all of them at once, a few at a time, down to the deepest.

A worker drives one thread until that stops; whether it split, ended or failed decides here what
comes next. Workers are threads of Python: what they wait for is agents.
"""

import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import NamedTuple

from uwf_git.agents.group import cancellable, wait_for_one
from uwf_git.commands.drive.drive_thread import Drive, Driven, Watcher
from uwf_git.commands.step.branches import join_branches, list_leaves, list_trunks, settle_branches
from uwf_git.commands.step.record_turn import TurnFailed, TurnInterrupted
from uwf_git.commands.turn.limits import find_steps_left
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED, Waiting
from uwf_git.store.threads.heads import find_head, get_head
from uwf_git.store.threads.lock import ThreadBusy, lock_drive
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_TICK_S = 0.05

# Why a drive ends, if branches stop for several reasons.
_GRAVEST = ("failed", "refused", "limit", "until", "paused", "waiting", "killed")


def drive_branches(drive: Drive) -> Driven | None:
    """Drive the branches of the thread of *drive* until they are joined; None once they are.

    Return why the drive ends, if no branch can go on. After Ctrl-C all agents are stopped and their
    attempts recorded.
    """
    return _BranchDrive(drive).run()


class _Stop(NamedTuple):
    thread: ThreadId
    stopped: str

    error: UwfError | None = None


class _BranchDrive:
    """The branches of one drive: who is at work, and why the others stopped."""

    def __init__(self, drive: Drive) -> None:
        self._drive, self._store, self._caller = drive, drive.store, drive.caller
        self._pool = ThreadPoolExecutor(max_workers=drive.request.step.jobs)
        self._cancelled, self._is_closing = threading.Event(), threading.Event()
        self._settling, self._one_at_a_time = threading.Lock(), threading.Lock()
        self._pending: dict[Future[str], ThreadId] = {}
        self._at_work: set[ThreadId] = set()
        self._driven: dict[ThreadId, Driven] = {}
        self._stops: list[_Stop] = []
        self._is_idle = True
        """Nothing could be done: other processes work on all branches."""

    def run(self) -> Driven | None:
        """Drive until the branches are joined, or no branch can go on: return why."""
        drive = self._drive
        self._run_all()
        # One that has ended since holds nobody: another branch was enough, or a person ended it.
        stops = [each for each in self._stops if not self._has_ended(each.thread)]
        if drive.read_status() in {"paused", *ENDED}:
            # It was steered meanwhile, which stopped its branches: the drive finds that.
            return None
        if any(each.stopped != "max-steps" for each in stops):
            return self._tell(stops)
        if drive.is_at_max_steps():
            return drive.stop("max-steps")
        if self._is_idle:
            drive.request.sleep(_TICK_S)
        return None

    def _run_all(self) -> None:
        root = self._drive.thread
        with self._pool:
            try:
                for trunk in list(list_trunks(self._store, self._read(root))):
                    self._settle(trunk)
                self._go_on_with(root)
                while self._pending:
                    for future in wait_for_one(self._pending):
                        self._after(self._pending.pop(future), future)
            except BaseException:
                self._is_closing.set()
                self._cancelled.set()
                self._pool.shutdown(wait=True, cancel_futures=True)
                # An agent that was interrupted has more to say.
                for future in self._pending:
                    error = None if future.cancelled() else future.exception()
                    if isinstance(error, TurnInterrupted):
                        raise error from None
                raise

    def _go_on_with(self, thread: ThreadId) -> None:
        """Drive every branch below *thread* that has not ended."""
        for leaf in list(list_leaves(self._store, self._read(thread))):
            self._submit(leaf)

    def _submit(self, thread: ThreadId) -> None:
        if not self._is_closing.is_set() and thread not in self._pending.values():
            self._is_idle = False
            self._pending[self._pool.submit(self._work_on, thread)] = thread

    def _work_on(self, thread: ThreadId) -> str:
        """Drive one branch until it stops, in a thread of Python of its own; return why it did."""
        head = find_head(self._store, thread)
        if head is None or head.archived:
            # It was ended while it waited for its turn.
            return "killed"
        with cancellable(self._cancelled):
            try:
                self._driven[thread] = driven = self._drive_alone(thread)
            except CancelledError:
                return "max-steps"
            if driven.stopped == "failed":
                is_given_up = self._is_given_up(thread)
                if driven.failure is not None:
                    driven.failure.is_given_up = is_given_up
                    with self._one_at_a_time:
                        self._drive.watcher.on_branch_failed(driven.failure)
                if is_given_up:
                    return "killed"
        if driven.stopped in {"failed", "until", "limit"}:
            # Before the pool takes the next thread: what is under way finishes its step.
            self._is_closing.set()
        return driven.stopped

    def _drive_alone(self, thread: ThreadId) -> Driven:
        outer = self._drive
        request = outer.request._replace(
            step=outer.request.step._replace(thread=thread, is_driven=True),
            max_steps=None,
            sleep=self._sleep,
            is_branch=True,
            is_over=lambda: self._is_closing.is_set() or not self._may_begin(thread),
        )
        try:
            with lock_drive(self._store, thread, since_ms=self._caller.now_ms()) as lock:
                watcher = self._watcher(thread)
                return Drive(self._store, self._caller, request, watcher, lock).run()
        finally:
            with self._one_at_a_time:
                self._at_work.discard(thread)

    def _is_given_up(self, thread: ThreadId) -> bool:
        """Give a failed branch up, or one around it, if a container says so; return whether."""
        with self._settling:
            trunk = self._read(thread).get_trunk()
            while trunk is not None and not self._has_ended(thread):
                settle_branches(self._store, self._caller, trunk)
                trunk = None if trunk == self._drive.thread else self._read(trunk).get_trunk()
        return self._has_ended(thread)

    def _after(self, thread: ThreadId, future: Future[str]) -> None:
        """Decide what follows when *thread* has stopped."""
        try:
            stopped = future.result()
        except UwfError as error:
            self._stops.append(_Stop(thread, "refused", error))
            return
        if stopped == "split":
            self._settle(thread)
            self._go_on_with(thread)
            return
        trunk = self._read(thread).get_trunk()
        while trunk is not None and trunk != self._drive.thread and self._has_ended(trunk):
            # It was given up itself.
            trunk = self._read(trunk).get_trunk()
        if trunk is None:
            return
        self._settle(trunk, may_have_failed=stopped != "end")
        if stopped not in {"end", "killed"}:
            self._stops.append(_Stop(thread, stopped))

    def _settle(self, trunk: ThreadId, *, may_have_failed: bool = True) -> None:
        """End the branches of *trunk* that are given up, and join the branches if all have ended.

        Why they cannot be joined is kept for the end: the work of other branches goes on.
        """
        try:
            with self._settling:
                settle_branches(self._store, self._caller, trunk, may_have_failed=may_have_failed)
            joined = join_branches(self._store, self._caller, trunk)
        except ThreadBusy:
            # Another process joins them.
            return
        except UwfError as error:
            self._stops.append(_Stop(trunk, "refused", error))
            return
        if joined is not None:
            self._is_idle = False
            self._watcher(None).on_step(joined)
            if trunk != self._drive.thread:
                self._submit(trunk)

    def _may_begin(self, thread: ThreadId) -> bool:
        """Return whether *thread* may take a step: steps under way count for the most steps."""
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
        if self._cancelled.is_set():
            raise KeyboardInterrupt
        if self._is_closing.is_set() or self._drive.read_status() != "split":
            raise CancelledError
        self._drive.request.sleep(seconds)

    def _watcher(self, thread: ThreadId | None) -> Watcher:
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

    def _tell(self, stops: list[_Stop]) -> Driven:
        """Return why the drive ends, by the gravest of the reasons of its branches."""
        drive = self._drive
        for stopped in _GRAVEST:
            found = next((each for each in stops if each.stopped == stopped), None)
            if found is None:
                continue
            if found.error is not None:
                raise found.error
            inner = self._driven[found.thread]
            told = drive.stop(inner.stopped, failure=inner.failure)
            return told._replace(waiting=inner.waiting)
        return drive.stop("max-steps")

    def _has_ended(self, thread: ThreadId) -> bool:
        return get_head(self._store, thread).archived

    def _read(self, thread: ThreadId) -> Snapshot:
        return read_snapshot(self._store, get_head(self._store, thread).commit)
