"""Drive a thread: step after step, with retries and waits, until there is a reason to stop.

Each step is an ordinary step, so another drive continues a drive that was cut short anywhere. While
waiting, the thread's ref is polled, so a pause or an end takes effect. Source: seed 000 section 3;
seed 003's `run`.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.agents.group import cancellable, check_cancelled, wait_for_one
from uwf_git.commands.caller import Caller
from uwf_git.commands.family import BranchHeld, check_ancestors
from uwf_git.commands.split import find_container
from uwf_git.commands.step.record_turn import TurnFailed, TurnInterrupted
from uwf_git.commands.step.step_thread import (
    StepRequest,
    join_branches,
    list_leaves,
    list_trunks,
    settle_branches,
    step_thread,
)
from uwf_git.commands.turn.branches import ThreadNotActive, ThreadNotReady, read_active
from uwf_git.commands.turn.choose_agent import check_roles
from uwf_git.commands.turn.flow import LimitReached, RetryRules, find_steps_left
from uwf_git.commands.turn.next_move import Steered, find_steered
from uwf_git.commands.turn.turn import LIMIT_KIND, Played, ThreadResult, Turn, build_thread_result
from uwf_git.debug_log import debug
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.text import first_line
from uwf_git.model.thread import ENDED, Status, Waiting
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved, find_head, get_head
from uwf_git.store.threads.history import Snapshot, read_snapshot, walk_trunks
from uwf_git.store.threads.local_files import (
    ThreadBusy,
    ThreadLock,
    forget_lock,
    is_being_stopped,
    keep_jobs,
    lock_drive,
)

StoppedBy = Literal[
    "end", "waiting", "split", "paused", "failed", "killed", "max-steps", "until", "limit"
]  # fmt: skip

Sleep = Callable[[float], None]


# Steering or ending a thread holds its lock for a moment; this is far longer.
_MOST_COLLISIONS = 200
_COLLISION_S = 0.05

# Pause for an agent that reports again and again a limit that is over already.
_LONGEST_PAUSE_S = 60.0

# How often a wait looks at the thread: seldom in a wait longer than a retry's.
_WAIT_TICK_S = 0.2
_LONGEST_TICK_S = 1.0
_LONG_S = 60.0
_MS = 1000

# Waits for a limit whose end nobody knows; they grow as the waits of retries.
_UNKNOWN_LIMIT = RetryRules(0, 60.0)


class DriveRequest(NamedTuple):
    step: StepRequest
    max_steps: int | None = None

    until: str | None = None

    wait: bool = False
    """Sleep until the end of a limit that an agent hit, or for a while; if False, stop there."""

    sleep: Sleep = time.sleep

    is_branch: bool = False

    is_over: Callable[[], bool] = lambda: False
    """Begin no more steps."""

    may_do_nothing: bool = False
    """Return also why not even one step can be taken; if False, that is an error."""

    may_have_ended: bool = False
    """Return the end of a thread that has ended; if False, that is an error."""


class Driven(NamedTuple):
    last: ThreadResult
    steps: int

    stopped: StoppedBy
    waiting: Waiting | None = None

    failure: TurnFailed | None = None

    steered: Steered | None = None


class Watcher(NamedTuple):
    on_step: Callable[[ThreadResult], None]
    on_retry: Callable[[TurnFailed, float], None]
    """An attempt failed; the next is due in so many seconds."""

    on_wait: Callable[[ThreadId, Waiting], None]
    """The drive of the thread, or of a branch, sleeps until a limit ends."""

    on_branch_failed: Callable[[TurnFailed], None] = lambda _failure: None
    """A branch has failed; if it is given up, the thread goes on without the branch."""

    def then(self, on_change: Callable[[], None]) -> "Watcher":
        """Return a watcher that calls *on_change* as well, after each report."""

        def after(told: Callable[..., None]) -> Callable[..., None]:
            def tell(*what: Any) -> None:
                told(*what)
                on_change()

            return tell

        return Watcher(*(after(each) for each in self))


def drive_thread(
    store: Store, caller: Caller, request: DriveRequest, *, watcher: Watcher
) -> Driven:
    """Step the thread until it ends, or there is another reason to stop."""
    with hold_drive(store, caller, request, watcher=watcher) as drive:
        return drive.run()


@contextmanager
def hold_drive(
    store: Store, caller: Caller, request: DriveRequest, *, watcher: Watcher
) -> Iterator["Drive"]:
    """Hold the thread's drive lock and yield the drive that ``drive_thread`` runs."""
    named, may_have_ended = request.step.thread, request.may_have_ended
    head, snapshot = read_active(store, named, may_have_ended=may_have_ended)
    choice = request.step.choice
    roles = check_roles(snapshot, request.until, choice.agents)
    choice = choice._replace(others=roles, is_for_drive=True)
    with lock_drive(store, head.thread, since_ms=caller.now_ms()) as lock:
        keep_jobs(store, head.thread, request.step.jobs)
        step = request.step._replace(thread=head.thread, is_driven=True, choice=choice)
        yield Drive(store, caller, request._replace(step=step), watcher, lock)
        if head.archived:
            forget_lock(store, head.thread)


class Drive:
    """One drive; ``run`` runs it to its end."""

    def __init__(
        self,
        store: Store,
        caller: Caller,
        request: DriveRequest,
        watcher: Watcher,
        lock: ThreadLock,
    ) -> None:
        self.store, self.caller, self.request, self.watcher = store, caller, request, watcher
        self.lock = lock
        self.thread = ThreadId(request.step.thread)
        self.step = request.step._replace(play=self._play)
        self.steps = self.stopped_turns = self.tries_in_a_row = self.collisions = 0
        self.last: ThreadResult | None = None
        self.rules = RetryRules(0, 0)
        self.is_stopped = False
        self.has_begun = False

    def run(self) -> Driven:
        while True:
            driven = self._go_on()
            if driven is not None:
                debug("WXME2TV6", "drive stops", thread=self.thread, why=driven.stopped)
                return driven

    def _play(self, turn: Turn) -> Played:
        command = turn.agent.payload["command"]
        self.rules = turn.retry
        self.lock.say(turn.role, agent_name(command))
        self.has_begun = True
        try:
            played = self.request.step.play(turn)
        finally:
            self.lock.say("")
        self.is_stopped = played.is_stopped
        is_limit = (played.error or {}).get("kind") == LIMIT_KIND
        if not (is_limit and self.request.wait) or played.left.reset_at is not None:
            return played
        pause_ms = int(_UNKNOWN_LIMIT.wait_s(turn.attempt) * 1000)
        return played._replace(left=played.left._replace(reset_at=self.caller.now_ms() + pause_ms))

    def _go_on(self) -> Driven | None:
        """Take a step, or find why none can be taken; return None to go on."""
        check_cancelled()
        if is_being_stopped(self.store, self.thread):
            # Checked before the step too: ending the thread needs the lock that a step takes.
            self.request.sleep(_COLLISION_S)
            return None
        try:
            return self._advance()
        except TurnFailed as failure:
            return self._after_failure(failure)
        except LimitReached as reached:
            return self._stopped_unless_first("limit", reached)
        except ThreadNotReady as error:
            return self._not_ready(error)
        except BranchHeld as held:
            return self._held(held)
        except ThreadNotActive:
            return self.ended()
        except (ThreadBusy, HeadMoved) as error:
            self._let_pass(error)
            return None

    def _advance(self) -> Driven | None:
        """Take a step, or drive the branches; return why the drive ends, None to go on."""
        if self.request.is_over():
            return self.stop("max-steps")
        # The thread is not read for that after a step of its own that did not split it.
        if (self.last is None or self.last.status == "split") and self.read_status() == "split":
            # A branch leaves its own branches to whoever drives it.
            if self.request.is_branch:
                return self.stop("split")
            return _BranchDrive(self).run()
        return self._after_step(step_thread(self.store, self.caller, self.step))

    def _after_step(self, stepped: ThreadResult) -> Driven | None:
        self.last = stepped
        self.has_begun = True
        self.collisions = self.tries_in_a_row = 0
        is_step = stepped.role is not None and stepped.status != "waiting"
        self.steps += is_step
        self.watcher.on_step(stepped)
        if stepped.status == "completed":
            return Driven(stepped, self.steps, "end")
        if stepped.status == "waiting":
            return Driven(stepped, self.steps, "waiting", self._snapshot().get_present().waiting)
        if stepped.status == "paused":
            steered = find_steered(self.store, self._snapshot())
            return Driven(stepped, self.steps, "paused", steered=steered)
        if stepped.role is not None and stepped.role == self.request.until:
            return Driven(stepped, self.steps, "until")
        if self.is_at_max_steps():
            return Driven(stepped, self.steps, "max-steps")
        return None

    def is_at_max_steps(self) -> bool:
        """Return whether the drive may begin no more turns; a stopped turn counts as well."""
        most = self.request.max_steps
        return most is not None and self.steps + self.stopped_turns >= most

    def _after_failure(self, failure: TurnFailed) -> Driven | None:
        """Return how the drive ends after a failed attempt; None to try again."""
        if isinstance(failure, TurnInterrupted):
            if not self.is_stopped:
                failure.hint = f"{failure.saved}: `uwf thread run {self.thread}` goes on"
                raise failure
            return self._stopped_from_outside(failure)
        if failure.stepped is not None:
            self._after_step(failure.stepped)
        status = failure.facts["status"]
        self.has_begun = True
        self.tries_in_a_row += 1
        if status == "paused":
            return self.stop("paused", failure=failure)
        if status == "waiting":
            return self._wait_for_limit(failure)
        if status == "failed" or not self._may_retry(failure):
            return self.stop("failed", failure=failure)
        seconds = self.rules.wait_s(self._snapshot().get_present().failures)
        self.watcher.on_retry(failure, seconds)
        self._sleep("ready", seconds)
        return None

    def _may_retry(self, failure: TurnFailed) -> bool:
        """Return whether to try again. A lost attempt is no retry, but may be lost every time."""
        is_cut_short = failure.facts.get("kind") in {"lost", "interrupted"}
        return not is_cut_short or self.tries_in_a_row <= max(1, self.rules.retries)

    def _not_ready(self, error: ThreadNotReady) -> Driven | None:
        """Return why no step can be taken, or wait until a step can be taken."""
        snapshot = self._snapshot()
        status = snapshot.record.status
        if status == "ready":
            # It became ready since the step was refused.
            return None
        if status == "waiting" and self.request.wait:
            waiting = snapshot.get_present().waiting
            if waiting is not None and waiting.until is not None:
                return self._wait_for_limit(None)
        if status == "paused" or status == "failed" or status == "waiting":  # noqa: PLR1714 (mypy narrows this way only)
            return self._stopped_unless_first(status, error)
        raise error

    def _wait_for_limit(self, failure: TurnFailed | None) -> Driven | None:
        """Sleep until the limit ends that an agent hit, or stop the drive."""
        waiting = self._snapshot().get_present().waiting
        if waiting is None or waiting.until is None:
            # The thread was changed meanwhile; the next step finds its state.
            return None
        if not self.request.wait:
            return self.stop("waiting", failure=failure)
        self.has_begun = True
        self.watcher.on_wait(self.thread, waiting)
        pause_s = min(_LONGEST_PAUSE_S, max(0, self.tries_in_a_row - 1))
        self._sleep("waiting", pause_s, until=waiting.until)
        return None

    def _sleep(self, status: Status, seconds: float, *, until: int = 0) -> None:
        """Sleep *seconds* and until the time *until*, but only while the thread is in *status*.

        The ref is polled, so a pause or an end takes effect, also one before the first look.
        """
        debug("4WZ9CECS", "drive sleeps", thread=self.thread, seconds=seconds, until=until)
        seen, slept_s = None, 0.0
        while True:
            left_s = max(seconds - slept_s, (until - self.caller.now_ms()) / _MS)
            head = find_head(self.store, self.thread)
            if left_s <= 0 or head is None or head.archived:
                return
            if head != seen and read_snapshot(self.store, head.commit).record.status != status:
                return
            seen = head
            tick_s = min(left_s, _LONGEST_TICK_S if left_s > _LONG_S else _WAIT_TICK_S)
            self.request.sleep(tick_s)
            check_cancelled()
            slept_s += tick_s

    def _let_pass(self, error: ThreadBusy | HeadMoved) -> None:
        """Wait a moment while another process steers or ends the thread."""
        self.collisions += 1
        debug("8F6T9407", "drive lets pass", thread=self.thread, because=error.code)
        is_stopped = is_being_stopped(self.store, self.thread)
        is_playing = bool(error.facts.get("holder", {}).get("role")) and not is_stopped
        if is_playing or self.collisions > _MOST_COLLISIONS:
            raise error
        self.request.sleep(_COLLISION_S)

    def _stopped_from_outside(self, failure: TurnInterrupted) -> Driven | None:
        """Return how the drive ends after its agent was stopped; None to go on.

        A pause or an end ends it. Otherwise the turn counts, since agents can stop themselves.
        """
        while is_being_stopped(self.store, self.thread):
            self.request.sleep(_COLLISION_S)
        self.has_begun = True
        self.stopped_turns += 1
        record = self._snapshot().record
        if record.status in {"completed", "killed"}:
            return self.ended()
        if record.status == "paused":
            return self.stop("paused")
        if self.is_at_max_steps():
            return self.stop("max-steps", failure=failure)
        # A thread that was changed since, as by a resume, is to go on.
        is_unchanged = record.event == "attempt"
        self.tries_in_a_row = self.tries_in_a_row + 1 if is_unchanged else 0
        if not self._may_retry(failure):
            return self.stop("failed", failure=failure)
        return None

    def _held(self, held: BranchHeld) -> Driven:
        """Stop as the thread around this branch has stopped."""
        if not (self.request.is_branch or self.has_begun):
            raise held
        return self.stop("paused" if held.facts["status"] == "paused" else "killed")

    def ended(self) -> Driven:
        return self.stop("end" if self._snapshot().record.status == "completed" else "killed")

    def _stopped_unless_first(
        self, stopped: StoppedBy, error: LimitReached | ThreadNotReady
    ) -> Driven:
        """Stop the drive; before its first step, raise *error* if it may not do nothing."""
        if not (self.has_begun or self.request.may_do_nothing):
            raise error
        return self.stop(stopped)

    def stop(self, stopped: StoppedBy, *, failure: TurnFailed | None = None) -> Driven:
        snapshot = self._snapshot()
        record = snapshot.record
        # A pause or kill may have a reason in its body; the body of an attempt is the agent's log.
        reason = "" if record.event == "attempt" else first_line(snapshot.body)
        said = reason or snapshot.subject
        last = build_thread_result(record, said=said, commit=snapshot.commit.oid)
        if record.role is None and self.last is not None:
            last = last._replace(role=self.last.role)
        waiting = snapshot.get_present().waiting if record.status == "waiting" else None
        return Driven(
            last, self.steps, stopped, waiting, failure, find_steered(self.store, snapshot)
        )

    def read_status(self) -> Status:
        return self._snapshot().record.status

    def _snapshot(self) -> Snapshot:
        return read_snapshot(self.store, get_head(self.store, self.thread).commit)


# Drive the branches of a thread: all of them at once, a few at a time, down to the deepest.
#
# A worker drives one thread until that stops; whether it split, ended or failed decides here what
# comes next. Workers are threads of Python: what they wait for is agents.

# Why a drive ends, if branches stop for several reasons.
_GRAVEST = ("failed", "refused", "limit", "until", "paused", "waiting", "killed")


class _Stop(NamedTuple):
    thread: ThreadId
    stopped: str

    error: UwfError | OSError | None = None

    @property
    def rests(self) -> bool:
        """Whether the branch has stopped until somebody steers or answers it."""
        return self.stopped in {"paused", "waiting"} or isinstance(self.error, ThreadNotReady)


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
        """Drive until the branches are joined; return why if no branch can go on.

        After Ctrl-C all agents are stopped and their attempts recorded.
        """
        drive = self._drive
        self._run_all()
        # One that has ended since holds nobody: another branch was enough, or a person ended it.
        stops = [each for each in self._stops if not self._has_ended(each.thread)]
        if drive.read_status() in {"paused", *ENDED}:
            # It was steered meanwhile, which stopped its branches: the drive finds that.
            return None
        stops = [each for each in stops if each.stopped != "max-steps"]
        if all(each.rests for each in stops) and any(map(self._goes_on, stops)):
            return None
        if stops:
            return self._tell(stops)
        if drive.is_at_max_steps():
            return drive.stop("max-steps")
        if self._is_idle:
            drive.request.sleep(_COLLISION_S)
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
            except BaseException as reason:
                self._is_closing.set()
                self._cancelled.set()
                self._pool.shutdown(wait=True, cancel_futures=True)
                # An agent that was interrupted has more to say.
                for future in self._pending if isinstance(reason, KeyboardInterrupt) else ():
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
        try:
            with cancellable(self._cancelled):
                self._driven[thread] = driven = self._drive_alone(thread)
                if driven.stopped == "failed":
                    is_given_up = self._is_given_up(thread)
                    if driven.failure is not None:
                        driven.failure.is_given_up = is_given_up
                        with self._one_at_a_time:
                            self._drive.watcher.on_branch_failed(driven.failure)
                    if is_given_up:
                        return "killed"
        except CancelledError:
            return "max-steps"
        except OSError:
            # As of a full disk, which would meet the next ones as well.
            self._is_closing.set()
            raise
        is_lost = driven.stopped == "failed" and not self._is_race(thread)
        if is_lost or driven.stopped in {"until", "limit"}:
            # Before the pool takes the next thread: what is under way finishes its step.
            self._is_closing.set()
        return driven.stopped

    def _is_race(self, thread: ThreadId) -> bool:
        """Return whether another branch is enough where *thread* or a thread around it belongs."""
        for trunk in walk_trunks(self._store, self._read(thread)):
            split = trunk.get_present().split
            if split is not None and find_container(trunk, split.at).policy.get("join") == "any":
                return True
        return False

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
                drive = Drive(self._store, self._caller, request, watcher, lock)
                try:
                    return drive.run()
                finally:
                    outer.has_begun |= drive.has_begun
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
        """Decide what follows when *thread* has stopped; the work of other branches goes on."""
        at = thread
        try:
            stopped = future.result()
            # What it does not let join or go on concerns the thread around the branches.
            at = self._drive.thread
            self._decide(thread, stopped)
        except (UwfError, OSError) as error:
            self._stops.append(_Stop(at, "refused", error))

    def _decide(self, thread: ThreadId, stopped: str) -> None:
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
        except (UwfError, OSError) as error:
            self._stops.append(_Stop(trunk, "refused", error))
            return
        if joined is not None:
            self._is_idle = False
            self._drive.has_begun = True
            # The workflow of a role has been a step of that role as well.
            is_visit = read_snapshot(self._store, joined.commit).get_present().at is None
            with self._one_at_a_time:
                self._drive.steps += is_visit
            self._watcher(None).on_step(joined)
            if trunk != self._drive.thread:
                self._submit(trunk)

    def _may_begin(self, thread: ThreadId) -> bool:
        """Return whether *thread* may take a step: steps under way count for the most steps."""
        drive, most = self._drive, self._drive.request.max_steps
        with self._one_at_a_time:
            under_way = len(self._at_work - {thread})
            is_full = most is not None and drive.steps + drive.stopped_turns + under_way >= most
            if is_full or drive.request.is_over():
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

        def alone(told: Callable[..., None]) -> Callable[..., None]:
            def tell(*what: Any) -> None:
                with self._one_at_a_time:
                    told(*what)

            return tell

        return Watcher(on_step, alone(outer.watcher.on_retry), alone(outer.watcher.on_wait))

    def _tell(self, stops: list[_Stop]) -> Driven:
        """Return why the drive ends, by the gravest of the reasons of its branches."""
        drive = self._drive
        # What was at rest before says nothing of why another stopped.
        found = min(stops, key=lambda each: (each.rests, _GRAVEST.index(each.stopped)))
        if isinstance(found.error, OSError):
            raise found.error
        error = found.error or self._driven[found.thread].failure
        if error is not None and error.hint is not None:
            # Other branches may have failed as well.
            named = rf"(?<=uwf thread )(retry|run) {found.thread}"
            error.hint = re.sub(named, rf"\1 {drive.thread}", error.hint)
        if found.error is not None:
            status = found.error.facts.get("status")
            if found.rests and drive.has_begun and status in ("waiting", "paused"):
                # It was so before, and others went on.
                waiting = self._read(found.thread).get_present().waiting
                return drive.stop(status)._replace(waiting=waiting)
            raise found.error
        inner = self._driven[found.thread]
        told = drive.stop(inner.stopped, failure=inner.failure)
        return told._replace(waiting=inner.waiting)

    def _goes_on(self, stop: _Stop) -> bool:
        """Return whether somebody has let a branch at rest go on while others were at work."""
        branch = self._read(stop.thread)
        with suppress(BranchHeld):
            check_ancestors(self._store, branch)
            return branch.record.status in {"ready", "split"}
        return False

    def _has_ended(self, thread: ThreadId) -> bool:
        return get_head(self._store, thread).archived

    def _read(self, thread: ThreadId) -> Snapshot:
        return read_snapshot(self._store, get_head(self._store, thread).commit)
