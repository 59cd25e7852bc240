"""Task handles: one task, and all that can be done with it.

Owns: what each verb means for a task. Knows nothing of: other tasks, how a store is found.
Always true: a handle holds no more than the task's id: each look reads the store, each call may
meet what somebody else has done meanwhile, and calls of several Python threads do not disturb each
other. Source: seed 004, TaskHandle.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from uwf_git.commands.choose_agent import Choice
from uwf_git.commands.drive_thread import DriveRequest, Watcher, drive_thread
from uwf_git.commands.stepped import Stepped
from uwf_git.commands.thread_amend import AmendRequest, amend_thread
from uwf_git.commands.thread_answer import Answer, answer_thread, read_question
from uwf_git.commands.thread_fork import ForkRequest, fork_thread
from uwf_git.commands.thread_kill import kill_thread
from uwf_git.commands.thread_patch import patch_thread
from uwf_git.commands.thread_pause import pause_thread
from uwf_git.commands.thread_poke import poke_thread
from uwf_git.commands.thread_resume import resume_thread
from uwf_git.commands.thread_retry import retry_thread
from uwf_git.commands.thread_show import show_thread
from uwf_git.commands.thread_step import StepRequest, TurnInterrupted, step_thread
from uwf_git.commands.thread_wait import WaitRequest, wait_for_threads
from uwf_git.library.background import start_background
from uwf_git.library.events import EventQuery, TaskEvent, walk_events
from uwf_git.library.limits import Limits, name_limits
from uwf_git.library.outcomes import BackgroundRun, TaskRun, TaskStep, tell_run, tell_step
from uwf_git.library.place import Place
from uwf_git.library.players import RolePlayer
from uwf_git.library.sources import WorkflowSource, read_source
from uwf_git.library.starting import new_task_id, put_if_source, write_agents
from uwf_git.library.status import TaskState, TaskStatus, read_status
from uwf_git.store.store import Store

OnStep = Callable[[TaskStep], None]


class TaskHandle:
    """A task; made by ``TaskRuntime``.

    Its properties look anew each time; ``query`` gives all of one moment.
    """

    __slots__ = ("_place", "task_id")

    def __init__(self, place: Place, task_id: str) -> None:
        self._place = place
        self.task_id = task_id

    def __repr__(self) -> str:
        return f"<TaskHandle {self.task_id}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskHandle):
            return NotImplemented
        return (self.task_id, self._place.path) == (other.task_id, other._place.path)

    def __hash__(self) -> int:
        return hash(self.task_id)

    def query(self) -> TaskStatus:
        """Tell where the task stands.

        Raises:
            StoreDamaged: it cannot be read.
        """
        return read_status(show_thread(self._place.open(), self.task_id))

    @property
    def status(self) -> TaskState:
        """The status at this moment."""
        return self.query().status

    @property
    def workflow_name(self) -> str:
        """The name of the workflow that it runs."""
        return self.query().workflow_name

    @property
    def current_node(self) -> str | None:
        """The role that has taken the newest step; None before the first."""
        return self.query().current_node

    @property
    def current_iteration(self) -> int:
        """How many turns that role has had."""
        return self.query().current_iteration

    @property
    def state(self) -> Mapping[str, Any]:
        """The state that its roles share."""
        return self.query().state

    @property
    def start_time(self) -> int:
        """When it began, in milliseconds since 1970."""
        return self.query().start_time

    @property
    def last_update_time(self) -> int:
        """When something last happened to it, in milliseconds since 1970."""
        return self.query().last_update_time

    @property
    def end_time(self) -> int | None:
        """When it ended, in milliseconds since 1970; None as long as it has not."""
        return self.query().end_time

    @property
    def error(self) -> str | None:
        """Why the newest try failed, if no step has been taken since."""
        return self.query().error

    def step(
        self,
        *,
        agent: str | None = None,
        workdir: str | os.PathLike[str] | None = None,
        trust: bool = False,
    ) -> TaskStep:
        """Take the next step.

        *agent* plays this step (``CMD``, or ``ROLE=CMD``). *workdir* is where agents run from now
        on, as has to be said once of a task that came from elsewhere; *trust* lets its own commands
        run here.

        Raises:
            AgentFailed: there is no result; the try is recorded, with all that was printed.
            Refused: no step can be taken as the task is (paused, waiting, failed, ended, at a
                limit), or nobody may play.
            Conflict: somebody else is at work on it.
            KeyboardInterrupt: Ctrl-C; the try is recorded.
        """
        with self._stepping() as (store, player):
            request = StepRequest(self.task_id, player.play, self._choice(agent, trust=trust))
            request = request._replace(workdir=None if workdir is None else os.fspath(workdir))
            return tell_step(step_thread(store, self._place.caller, request))

    def run(  # noqa: PLR0913 (what `uwf thread run` has as options; each is named where it is given)
        self,
        *,
        until: str | None = None,
        max_steps: int | None = None,
        wait: bool = False,
        agent: str | None = None,
        trust: bool = False,
        on_step: OnStep | None = None,
    ) -> TaskRun:
        """Take step after step until there is a reason to stop, and tell which.

        It stops at the end, at a person's turn, when somebody pauses or cancels the task, when an
        agent has used up its retries, at a limit, after *max_steps*, and after a step of the role
        *until*. With *wait* it sleeps through the usage limits that agents hit. *on_step* is
        called after each step, in this Python thread; what it raises ends the run.

        Raises:
            Refused: not even one step can be taken, or there is no role *until*.
            Conflict: somebody else is at work on it.
            KeyboardInterrupt: Ctrl-C; the try is recorded, and another run goes on.
        """
        with self._stepping() as (store, player):
            request = StepRequest(self.task_id, player.play, self._choice(agent, trust=trust))
            driven = drive_thread(
                store,
                self._place.caller,
                DriveRequest(request, max_steps, until, wait),
                watcher=self._watcher(store, on_step),
            )
            return tell_run(driven)

    def run_in_background(
        self, *, until: str | None = None, max_steps: int | None = None, wait: bool = False
    ) -> BackgroundRun:
        """Let a process of its own drive the task, as ``run`` does; it outlives this one.

        Raises:
            Refused: no step can be taken, or a Python function plays a role, which is only here.
            Conflict: somebody else is at work on it.
        """
        return start_background(
            self._place, self.task_id, until=until, max_steps=max_steps, wait=wait
        )

    def wait(self, timeout_s: float | None = None) -> TaskStatus:
        """Wait until nobody is at work on the task, and tell where it stands then.

        Raises:
            Conflict: somebody still is after *timeout_s*.
        """
        request = WaitRequest([self.task_id], timeout_s)
        wait_for_threads(self._place.open(), request, on_rest=lambda _rest: None)
        return self.query()

    def events(self, *, since: str | None = None, follow: bool = False) -> Iterator[TaskEvent]:
        """Give what has happened to the task, oldest first, after the event *since*.

        With *follow* it waits for more until the task ends, and without *since* begins with now.

        Raises:
            Refused: there is no such event.
        """
        query = EventQuery(task_id=self.task_id, since=since, follow=follow)
        return walk_events(self._place, query)

    def pause(self, reason: str = "") -> None:
        """Let no further step begin; one that is under way is finished and recorded.

        Raises:
            Refused: it is paused already, or has ended.
        """
        with self._place.writing() as store:
            pause_thread(store, self._place.caller, self.task_id, reason=reason)

    def interrupt(self, reason: str) -> None:
        """Pause now: an agent that is at work is ended, and what it had printed is kept.

        A player that is a Python function is waited for instead.

        Raises:
            Refused: it is paused already and nobody is at work, or has ended.
            Conflict: whoever is at work does not come to an end.
        """
        with self._place.writing() as store:
            pause_thread(store, self._place.caller, self.task_id, reason=reason, now=True)

    def resume(self, reason: str = "") -> None:
        """Let a paused task go on where it was; nothing runs by it.

        Raises:
            Refused: it is not paused.
        """
        with self._place.writing() as store:
            resume_thread(store, self._place.caller, self.task_id, reason=reason)

    def cancel(self, reason: str = "") -> None:
        """End the task for good, with what is at work on it; its history stays.

        Raises:
            Refused: it has ended.
            Conflict: whoever is at work does not come to an end.
        """
        with self._place.writing() as store:
            kill_thread(store, self._place.caller, self.task_id, reason=reason)

    def retry(self, hint: str = "") -> None:
        """Let a failed task try again with all its retries; its agent is told *hint*.

        Raises:
            Refused: it has not failed.
        """
        with self._place.writing() as store:
            retry_thread(store, self._place.caller, self.task_id, hint=hint)

    def poke(self, hint: str = "") -> None:
        """Take the newest step back, so that its role takes it again; it is told *hint*.

        Raises:
            Refused: there is no step to take back.
            Conflict: somebody is at work on it.
        """
        with self._place.writing() as store:
            poke_thread(store, self._place.caller, self.task_id, hint=hint)

    def answer(
        self,
        meta: Any,
        *,
        content: str = "",
        state: Mapping[str, Any] | None = None,
        note: str = "",
    ) -> TaskStep:
        """Answer as the role whose turn a person has.

        *state* is a JSON merge patch, *note* stands in the log.

        Raises:
            Refused: nobody is asked, or the answer does not fit the role; nothing is recorded.
            Conflict: somebody else was faster.
        """
        caller = self._place.caller
        with self._place.writing() as store:
            question = read_question(store, caller, self.task_id, default=self._place.agent)
            answer = Answer(meta, content, state, note=note)
            return tell_step(answer_thread(store, caller, question, answer))

    def append_nodes(self, addition: WorkflowSource, reason: str = "") -> None:
        """Add roles and transitions to the workflow of this task alone.

        Raises:
            Refused: the addition is not right; all its problems are told.
            Conflict: a step is under way.
        """
        from uwf_git.commands.thread_append import (  # noqa: PLC0415 (YAML and schemas: 100 ms)
            AppendRequest,
            append_to_thread,
        )

        text, path = read_source(addition, self._place.cwd)
        request = AppendRequest(self.task_id, text, path, reason, self._place.agent)
        with self._place.writing() as store:
            append_to_thread(store, self._place.caller, request)

    def update_state(self, patch: Mapping[str, Any], reason: str = "") -> None:
        """Change the state by a JSON merge patch: None removes a member.

        An agent that is at work does not see it; what it hands in is merged after.

        Raises:
            BadUsage: the patch is empty, or no object.
        """
        with self._place.writing() as store:
            patch_thread(store, self._place.caller, self.task_id, patch, reason=reason)

    def amend(
        self,
        *,
        workflow: WorkflowSource | None = None,
        agents: Mapping[str, str] | str | None = None,
        limits: Limits | None = None,
        reason: str = "",
    ) -> None:
        """Change the workflow, the agents or the limits for the rest of the task.

        Raises:
            Refused: there is no such workflow, role or limit, or the task's position is not in it.
            Conflict: another workflow is asked for, and a step is under way.
        """
        name = None if workflow is None else put_if_source(self._place, workflow)
        request = AmendRequest(
            self.task_id, name, write_agents(agents), name_limits(limits), reason, self._place.agent
        )
        with self._place.writing() as store:
            amend_thread(store, self._place.caller, request)

    def fork(
        self,
        *,
        at: str | None = None,
        from_role: str | None = None,
        reason: str = "",
        workdir: str | None = None,
    ) -> "TaskHandle":
        """Begin a new task that goes on from a step of this one, which stays as it is.

        *at* is the number or the hash of a step; *from_role* has that role's newest turn taken
        again. Without either it goes on from where this one is now.

        Raises:
            Refused: there is no such step.
        """
        request = ForkRequest(self.task_id, at, from_role, reason, workdir)
        thread = new_task_id(self._place)
        with self._place.writing() as store:
            fork_thread(store, self._place.caller, request, thread=thread)
        return TaskHandle(self._place, thread)

    @contextmanager
    def _stepping(self) -> Iterator[tuple[Store, RolePlayer]]:
        player = RolePlayer(self._place.players, self._place.now_ms)
        with self._place.writing() as store:
            try:
                yield store, player
            except TurnInterrupted as error:
                if player.was_interrupted:
                    # For a program that has us for a part, Ctrl-C is Ctrl-C.
                    raise KeyboardInterrupt(error.message) from error
                raise

    def _choice(self, agent: str | None, *, trust: bool) -> Choice:
        return Choice(agent, self._place.agent, trust)

    def _watcher(self, store: Store, on_step: OnStep | None) -> Watcher:
        def step(stepped: Stepped) -> None:
            self._place.follow_up(store)
            if on_step is not None:
                on_step(tell_step(stepped))

        def look(*_told: object) -> None:
            self._place.follow_up(store)

        return Watcher(step, look, look)
