"""Driving: a thread goes on, step after step, until there is a reason to stop.

Owns: the loop, its retries, and what it waits for; the right to drive is held all the time.
Knows nothing of: what a step does, how it is played, who watches.
Always true: each step is a step like any other, so that a drive which is cut short anywhere is
gone on with by another one. Waiting costs a look at the thread's ref from time to time, so that
whoever pauses or ends the thread is heard.
Source: seed 000 section 3; seed 003's `run`.
"""

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.bind_roles import NoSuchRole
from uwf_git.commands.caller import Caller
from uwf_git.commands.check_limits import LimitReached
from uwf_git.commands.drive_wait import wait_while_alike
from uwf_git.commands.retry_rules import RetryRules, read_retry
from uwf_git.commands.stepped import Stepped, tell_stepped
from uwf_git.commands.thread_errors import ThreadNotActive, ThreadNotReady, read_active
from uwf_git.commands.thread_step import StepRequest, TurnFailed, TurnInterrupted, step_thread
from uwf_git.commands.turn import Played, Turn
from uwf_git.debug_log import debug
from uwf_git.engine.subject import first_line
from uwf_git.model.thread import Waiting
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.heads import HeadMoved, get_head
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, ThreadLock, is_being_stopped, lock_drive

StoppedBy = Literal[
    "end", "waiting", "paused", "failed", "killed", "max-steps", "until", "limit"
]  # fmt: skip

Sleep = Callable[[float], None]

# Who steers a thread, or ends it, holds it for a moment; this is far more than that takes.
_MOST_COLLISIONS = 200
_COLLISION_S = 0.05

# An agent that says again and again that its limit is over already is not asked at full speed.
_LONGEST_PAUSE_S = 60.0


class DriveRequest(NamedTuple):
    """What is asked of a drive."""

    step: StepRequest
    max_steps: int | None = None
    """How many steps this drive takes at most; None: as many as it takes."""

    until: str | None = None
    """The role after whose step the drive stops."""

    wait: bool = False
    """Whether to sleep until the end of a limit that an agent hit, rather than to stop there."""

    sleep: Sleep = time.sleep


class Driven(NamedTuple):
    """A thread after a drive."""

    last: Stepped
    steps: int
    """How many steps this drive took."""

    stopped: StoppedBy
    waiting: Waiting | None = None
    """What it waits for, if it does."""

    failure: TurnFailed | None = None
    """Why the last try failed, if that is what stopped it."""


class Watcher(NamedTuple):
    """Who is told how a drive goes."""

    on_step: Callable[[Stepped], None]
    on_retry: Callable[[TurnFailed, float], None]
    """A try has failed, and there will be another one in so many seconds."""

    on_wait: Callable[[Waiting], None]
    """It sleeps until the end of a limit."""


def drive_thread(
    store: Store, caller: Caller, request: DriveRequest, *, watcher: Watcher
) -> Driven:
    """Step the thread until it ends, or there is another reason to stop.

    Raises:
        NoSuchRole: it is to stop after a role that the workflow has not.
        ThreadBusy: somebody else drives it, or takes a step of it.
        TurnInterrupted: Ctrl-C; the attempt was recorded, and another drive goes on.
        LimitReached, ThreadNotReady: not even one step can be taken.
        What else ``step_thread`` raises; the steps before it stand.
    """
    head, snapshot = read_active(store, request.step.thread)
    check_until(snapshot, request.until)
    with lock_drive(store, head.thread, since_ms=caller.now_ms()) as lock:
        step = request.step._replace(thread=head.thread, is_driven=True)
        return _Drive(store, caller, request._replace(step=step), watcher, lock).run()


def check_until(snapshot: Snapshot, role: str | None) -> None:
    """Make sure that a drive can stop after *role*.

    Raises:
        NoSuchRole: the thread's workflow has no such role.
    """
    workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
    if role is not None and role not in workflow.roles:
        raise NoSuchRole(role, workflow)


class _Drive:
    """One drive under way."""

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
        self.steps = 0
        self.last: Stepped | None = None
        self.rules = RetryRules(0, 0)
        self.is_stopped = False
        self.has_begun = False
        self.tries_in_a_row = 0
        self.collisions = 0

    def run(self) -> Driven:
        """Go on until there is a reason to stop."""
        while True:
            driven = self._go_on()
            if driven is not None:
                debug("WXME2TV6", "drive stops", thread=self.thread, why=driven.stopped)
                return driven

    def _play(self, turn: Turn) -> Played:
        command = turn.agent.payload["command"]
        self.rules = read_retry(turn.store.config, turn.agent.payload)
        self.lock.say(turn.role, agent_name(command))
        self.has_begun = True
        try:
            played = self.request.step.play(turn)
        finally:
            self.lock.say("")
        self.is_stopped = played.is_stopped
        return played

    def _go_on(self) -> Driven | None:
        """Take a step, or find out why none can be taken; None: there is more to do."""
        if is_being_stopped(self.store, self.thread):
            # Asked before the step as well: whoever ends it wants the lock that a step takes.
            self.request.sleep(_COLLISION_S)
            return None
        try:
            stepped = step_thread(self.store, self.caller, self.step)
        except TurnFailed as failure:
            return self._after_failure(failure)
        except LimitReached as reached:
            return self._stopped_unless_first("limit", reached)
        except ThreadNotReady as error:
            return self._not_ready(error)
        except ThreadNotActive:
            return self._ended()
        except (ThreadBusy, HeadMoved) as error:
            self._let_pass(error)
            return None
        return self._after_step(stepped)

    def _after_step(self, stepped: Stepped) -> Driven | None:
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
            return Driven(stepped, self.steps, "paused")
        if stepped.role == self.request.until:
            return Driven(stepped, self.steps, "until")
        if self.steps == self.request.max_steps:
            return Driven(stepped, self.steps, "max-steps")
        return None

    def _after_failure(self, failure: TurnFailed) -> Driven | None:
        """Go on after a try that failed, if that is of any use."""
        if isinstance(failure, TurnInterrupted):
            if not self.is_stopped:
                raise failure
            # By a pause, or by who ends the thread; if neither, that was long ago.
            return self._stopped_by_somebody()
        status = failure.facts["status"]
        self.has_begun = True
        self.tries_in_a_row += 1
        if status == "paused":
            return self._told("paused", failure=failure)
        if status == "waiting":
            return self._wait_for_limit(failure)
        if status == "failed" or not self._may_retry(failure):
            return self._told("failed", failure=failure)
        seconds = self.rules.wait_s(self._snapshot().get_present().failures)
        self.watcher.on_retry(failure, seconds)
        self._sleep(seconds)
        return None

    def _may_retry(self, failure: TurnFailed) -> bool:
        """Tell whether another try is due; one that was lost with its machine does not count.

        It must not be tried for ever either: what loses it may do so every time.
        """
        is_lost = failure.facts.get("kind") == "lost"
        return not is_lost or self.tries_in_a_row <= max(1, self.rules.retries)

    def _not_ready(self, error: ThreadNotReady) -> Driven | None:
        """Say why no step can be taken, or wait until one can."""
        snapshot = self._snapshot()
        status = snapshot.record.status
        if status == "ready":
            # It was made so after it was asked for a step.
            return None
        if status == "waiting" and self.request.wait and self._limit(snapshot) is not None:
            return self._wait_for_limit(None)
        if status == "paused" or status == "failed" or status == "waiting":  # noqa: PLR1714 (mypy narrows this way only)
            return self._stopped_unless_first(status, error)
        raise error

    def _wait_for_limit(self, failure: TurnFailed | None) -> Driven | None:
        """Sleep until the limit ends that an agent hit, or stop there."""
        waiting = self._limit(self._snapshot())
        if waiting is None or waiting.until is None:
            # Somebody has changed it meanwhile; what it is now shows at the next step.
            return None
        if not self.request.wait:
            return self._told("waiting", failure=failure)
        self.has_begun = True
        self.watcher.on_wait(waiting)
        self._sleep(min(_LONGEST_PAUSE_S, max(0, self.tries_in_a_row - 1)), until=waiting.until)
        return None

    def _limit(self, snapshot: Snapshot) -> Waiting | None:
        waiting = snapshot.get_present().waiting
        return None if waiting is None or waiting.until is None else waiting

    def _sleep(self, seconds: float, *, until: int = 0) -> None:
        """Sleep so long, and until then, as long as the thread's status stays as it is."""
        debug("4WZ9CECS", "drive sleeps", thread=self.thread, seconds=seconds, until=until)
        wait_while_alike(
            self.store,
            self.thread,
            seconds,
            until=(self.caller.now_ms, until),
            sleep=self.request.sleep,
        )

    def _let_pass(self, error: ThreadBusy | HeadMoved) -> None:
        """Wait for somebody who steers or ends the thread, which takes a moment.

        Raises:
            ThreadBusy: it is somebody who takes a step of it, or it takes too long.
            HeadMoved: it moves faster than steps can be taken.
        """
        self.collisions += 1
        debug("8F6T9407", "drive lets pass", thread=self.thread, because=error.code)
        is_stopped = is_being_stopped(self.store, self.thread)
        is_playing = bool(error.facts.get("holder", {}).get("role")) and not is_stopped
        if is_playing or self.collisions > _MOST_COLLISIONS:
            raise error
        self.request.sleep(_COLLISION_S)

    def _stopped_by_somebody(self) -> Driven | None:
        while is_being_stopped(self.store, self.thread):
            self.request.sleep(_COLLISION_S)
        snapshot = self._snapshot()
        if snapshot.record.status in {"completed", "killed"}:
            return self._ended()
        return self._told("paused") if snapshot.record.status == "paused" else None

    def _ended(self) -> Driven:
        return self._told("end" if self._snapshot().record.status == "completed" else "killed")

    def _stopped_unless_first(
        self, stopped: StoppedBy, error: LimitReached | ThreadNotReady
    ) -> Driven:
        """Stop here; who could not even begin is told *error*, as by a step."""
        if not self.has_begun:
            raise error
        return self._told(stopped)

    def _told(self, stopped: StoppedBy, *, failure: TurnFailed | None = None) -> Driven:
        """Tell where the thread is now, whoever brought it there."""
        snapshot = self._snapshot()
        record = snapshot.record
        # Who stops a thread may have said why.
        last = tell_stepped(record, said=first_line(snapshot.body) or snapshot.subject)
        if record.role is None and self.last is not None:
            last = last._replace(role=self.last.role)
        waiting = snapshot.get_present().waiting if record.status == "waiting" else None
        return Driven(last, self.steps, stopped, waiting, failure)

    def _snapshot(self) -> Snapshot:
        return read_snapshot(self.store, get_head(self.store, self.thread).commit)
