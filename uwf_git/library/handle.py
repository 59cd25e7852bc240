"""Task handles: the verbs of one task. Source: seed 004, TaskHandle.

A handle holds the task's id alone: each call reads the store, and several Python threads may call.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from uwf_git.commands.background import WaitRequest, start_thread_driver, wait_for_threads
from uwf_git.commands.control.answer import (
    PersonAnswer,
    answer_thread,
    kill_thread,
    patch_thread,
    pause_thread,
    read_question,
    resume_thread,
    retry_thread,
)
from uwf_git.commands.control.change_rules import AmendRequest, amend_thread, poke_thread
from uwf_git.commands.control.files import find_files, restore_files
from uwf_git.commands.drive_thread import DriveRequest, drive_thread
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import ForkRequest, fork_thread
from uwf_git.commands.step.record_turn import TurnInterrupted
from uwf_git.commands.step.step_thread import StepRequest, check_branches, step_thread
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.next_move import FUNCTION
from uwf_git.errors import Refused
from uwf_git.library import starting, values
from uwf_git.library.arguments import check_arguments, check_number
from uwf_git.library.players import RolePlayer
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store

Changed = TypeVar("Changed")


@check_arguments
class TaskHandle:
    """A task; made by ``TaskRuntime``.

    Its fields are read anew each time; ``query`` returns all of them at one moment.
    """

    __slots__ = ("_place", "task_id")

    def __init__(self, place: values.Place, task_id: str) -> None:
        self._place = place
        self.task_id = task_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.task_id}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskHandle):
            return NotImplemented
        return (self.task_id, self._place.path) == (other.task_id, other._place.path)

    def __hash__(self) -> int:
        return hash(self.task_id)

    def query(self) -> values.TaskStatus:
        """Return the task's status and state.

        Raises:
            StoreDamaged: it cannot be read.
        """
        return values.query_task(self._place, self.task_id)

    @property
    def status(self) -> values.TaskState:
        """The status now."""
        return self.query().status

    @property
    def workflow_name(self) -> str:
        """The name of its workflow."""
        return self.query().workflow_name

    @property
    def current_node(self) -> str | None:
        """The role or node at work, or whose turn it is; None if none is left."""
        return self.query().current_node

    @property
    def current_iteration(self) -> int | None:
        """Which turn of that role, or pass of the loop around the node, this is, from 1."""
        return self.query().current_iteration

    @property
    def last_node(self) -> str | None:
        """The role or node of the newest step; None before the first."""
        return self.query().last_node

    @property
    def next(self) -> str | None:
        """The role that takes the next step, or ``$END``; None after the end."""
        return self.query().next

    @property
    def state(self) -> Mapping[str, Any]:
        """The state that the roles share."""
        return self.query().state

    @property
    def start_time(self) -> int:
        """When it began, in milliseconds since 1970."""
        return self.query().start_time

    @property
    def last_update_time(self) -> int:
        """When it last changed, in milliseconds since 1970."""
        return self.query().last_update_time

    @property
    def end_time(self) -> int | None:
        """When it ended, in milliseconds since 1970; None before that."""
        return self.query().end_time

    @property
    def error(self) -> str | None:
        """Why the newest attempt failed, or the newest work was rejected; None if it went on."""
        return self.query().error

    def step(
        self,
        *,
        agent: starting.AgentsByRole | str | None = None,
        workdir: str | os.PathLike[str] | None = None,
        trust: bool = False,
        jobs: int = 4,
    ) -> values.TaskStep:
        """Take the next step; of a task that has split, one of each branch, *jobs* at a time.

        *agent* plays this step: a command, or as the *agents* of ``start`` for the role whose turn
        it is. *workdir* is where agents run from now on; a task from another store needs it once.
        *trust* lets the task's own agent commands run here.

        Raises:
            AgentFailed: the agent, or a branch's, failed; the attempt is recorded with its output.
            Refused: the task is paused, waiting, ended or at a limit, or no trusted agent
                plays the role.
            Conflict: another process works on the task, or on a branch.
            KeyboardInterrupt: Ctrl-C; the attempt is recorded.
        """
        check_number("TaskHandle.step(jobs=…)", jobs, least=1)
        with self._stepping(agent, jobs, trust=trust) as (store, request):
            asked = request._replace(workdir=values.to_path(workdir))
            stepped = step_thread(store, self._place.caller, asked)
            check_branches(stepped)
            return values.build_task_step(store, stepped)

    def run(
        self,
        *,
        until: str | None = None,
        max_steps: int | None = None,
        wait: bool = False,
        agent: starting.AgentsByRole | str | None = None,
        trust: bool = False,
        on_step: values.OnStep | None = None,
        jobs: int = 4,
    ) -> values.TaskRun:
        """Take steps until there is a reason to stop, and return it.

        The run stops at the end, at a person's turn, when the task is paused or cancelled, when an
        agent has used up its retries, at a limit, after *max_steps*, and after the next step of the
        role *until*. With *wait* it sleeps until the usage limits that agents hit are over.
        *on_step* is called after each step, one call at a time; an exception from it ends the run.
        *agent* plays this run: a command, or as the *agents* of ``start``. At most *jobs* branches
        are at work at once; each calls its players and *on_step* in a Python thread of its own.

        Raises:
            Refused: the task has ended, no trusted agent plays the role, or there is no role
                *until*.
            Conflict: another process works on the task.
            KeyboardInterrupt: Ctrl-C; the attempt is recorded, and another run continues.
        """
        check_number("TaskHandle.run(max_steps=…)", max_steps, least=1)
        check_number("TaskHandle.run(jobs=…)", jobs, least=1)
        with self._stepping(agent, jobs, trust=trust) as (store, request):
            driven = drive_thread(
                store,
                self._place.caller,
                DriveRequest(request, max_steps, until, wait, may_do_nothing=True),
                watcher=values.build_watcher(self._place, store, on_step),
            )
            return values.build_task_run(store, driven)

    def stream(
        self, *, until: str | None = None, agent: starting.AgentsByRole | str | None = None
    ) -> Iterator[values.TaskStep]:
        """Take steps until ``run`` would stop, and yield each before the next one is begun.

        The branches of a task that has split take theirs one after another.

        Raises:
            Refused, Conflict, KeyboardInterrupt: as ``run`` does.
        """
        while True:
            taken: list[values.TaskStep] = []
            is_over = partial(bool, taken)
            with self._stepping(agent) as (store, step):
                asked = DriveRequest(step, 1, until, may_do_nothing=True, is_over=is_over)
                watcher = values.build_watcher(self._place, store, taken.append)
                driven = drive_thread(store, self._place.caller, asked, watcher=watcher)
            yield from taken
            if driven.stopped != "max-steps" or not taken:
                return

    def run_in_background(
        self, *, until: str | None = None, max_steps: int | None = None, wait: bool = False
    ) -> values.BackgroundRun:
        """Start a process that drives the task, as ``run`` does; it outlives this one.

        Raises:
            Refused: no step can be taken, or a Python function of this process plays a role.
            Conflict: another process works on the task.
        """
        check_number("TaskHandle.run_in_background(max_steps=…)", max_steps, least=1)
        store = self._place.open()
        agents = show_thread(store, self.task_id)["agents"]
        bound = [role for role, command in agents.items() if command.startswith(FUNCTION)]
        if bound:
            raise Refused(
                f"task {self.task_id} cannot run in the background: Python functions of this "
                f"process play {', '.join(bound)}",
                code="players-stay-here",
                hint="run it in this process, or bind those roles to programs: amend(agents={…})",
                thread=self.task_id,
                roles=bound,
            )
        driver = start_thread_driver(
            store,
            self._place.caller,
            ThreadId(self.task_id),
            agent=self._place.agent,
            until=until,
            max_steps=max_steps,
            wait=wait,
        )
        return values.BackgroundRun(task_id=driver.thread, pid=driver.pid, log=driver.log)

    def wait(self, timeout_s: float | None = None) -> values.TaskStatus:
        """Wait until no process works on the task, and return its status.

        Raises:
            Conflict: a process still does after *timeout_s*.
            Refused: the caller is an agent that the task waits for.
        """
        check_number("TaskHandle.wait(timeout_s=…)", timeout_s, least=0)
        request = WaitRequest([self.task_id], timeout_s, self._place.environ)
        wait_for_threads(self._place.open(), request, on_rest=lambda _rest: None)
        return self.query()

    def events(
        self, *, since: str | None = None, follow: bool = False
    ) -> Iterator[values.TaskEvent]:
        """Yield the events of the task and its branches after the event *since*, oldest first.

        With *follow*, wait for more until the task ends; without *since*, skip older events.

        Raises:
            Refused: there is no such event.
        """
        return values.walk_events(self._place, self.task_id, since=since, follow=follow)

    def pause(self, reason: str = "") -> None:
        """Let no further step begin; a step under way is finished and recorded.

        Raises:
            Refused: the task is paused already, or has ended.
        """
        self._steer(pause_thread, reason=reason)

    def interrupt(self, reason: str) -> None:
        """Pause now: end the running agent, and keep its output.

        A Python function that plays the role is waited for instead, half a minute at most. An
        empty reason is none.

        Raises:
            Refused: the task is paused already and nothing runs, or has ended.
            Conflict: the process that works on it does not end.
        """
        self._steer(pause_thread, reason=reason, now=True)

    def resume(self, reason: str = "") -> None:
        """Let a paused task continue; this runs nothing.

        Raises:
            Refused: the task is not paused.
        """
        self._steer(resume_thread, reason=reason)

    def cancel(self, reason: str = "") -> None:
        """End the task for good, and the agent that runs; the history stays.

        A Python function that plays the role is waited for; if it takes long, or calls this itself,
        the task ends when it returns.

        Raises:
            Refused: the task has ended.
            Conflict: the process that works on it does not end.
        """
        self._steer(kill_thread, reason=reason)

    def retry(self, hint: str = "") -> None:
        """Let a failed task try again with all its retries; *hint* goes into the prompt.

        Of a task that has split, all branches below that have failed.

        Raises:
            Refused: nothing has failed.
        """
        self._steer(retry_thread, hint=hint)

    def poke(self, hint: str = "") -> None:
        """Take the newest step back, so that its role takes it again; *hint* goes into the prompt.

        Raises:
            Refused: there is no step to take back, or branches took it.
            Conflict: a process works on the task.
        """
        self._steer(poke_thread, hint=hint)

    def answer(
        self,
        meta: Any,
        *,
        content: str = "",
        state: Mapping[str, Any] | None = None,
        note: str = "",
    ) -> values.TaskStep:
        """Answer for the role that waits for a person.

        *state* is a JSON merge patch; *note* is recorded in the commit.

        Raises:
            Refused: the task waits for no person, or *meta* does not fit the role's schema.
            Conflict: another answer was faster.
        """
        caller = self._place.caller
        with self._place.writing() as store:
            question = read_question(store, caller, self.task_id, default=self._place.agent)
            answer = PersonAnswer(meta, content, state, note=note)
            return values.build_task_step(store, answer_thread(store, caller, question, answer))

    def append_nodes(
        self, addition: starting.AppendedSource, reason: str = "", *, to: str | None = None
    ) -> None:
        """Add to this task alone: roles and transitions to a graph, nodes to a flow.

        Nodes are a list, or ``{"nodes": …, "roles": …}``. They run after the root, or at the end
        of the container whose id or name is *to*.

        Raises:
            Refused: the addition is invalid; the message lists every problem.
            Conflict: a step is under way.
        """
        from uwf_git.commands.control.append import AppendRequest, append_to_thread  # noqa: PLC0415 (YAML and schemas: 100 ms)

        text, path = starting.read_source(addition, self._place.cwd)
        asked = AppendRequest(
            self.task_id, text, path, reason, to, *starting.new_agents(self._place)
        )
        with self._place.writing() as store:
            append_to_thread(store, self._place.caller, asked)

    def update_state(self, patch: Mapping[str, Any], reason: str = "") -> None:
        """Change the state by a JSON merge patch: None removes a member.

        A running agent does not see the change; its own patch is merged after it.

        Raises:
            BadUsage: the patch is empty, or no object.
        """
        self._steer(patch_thread, patch, reason=reason)

    def amend(
        self,
        *,
        workflow: starting.WorkflowSource | None = None,
        agents: starting.AgentsByRole | str | None = None,
        limits: starting.Limits | None = None,
        reason: str = "",
    ) -> None:
        """Change the workflow, the agents or the limits for the rest of the task.

        *agents* are as for ``start``. What they do not name stays:
        ``{"reviewer": {"timeout": 60}}`` keeps the command, and None removes a setting.

        Raises:
            Refused: there is no such workflow, role or limit; the workflow lacks the role at
                which the task stands, or differs on the way there; the task has split.
            Conflict: *workflow* is given, and a step is under way.
        """
        source = None if workflow is None else starting.find_source(workflow, self._place.cwd)
        name = str(workflow) if workflow is not None and source is None else None
        words, named = starting.to_agent_words(agents), starting.to_limit_names(limits)
        request = AmendRequest(
            self.task_id, name, words, named, reason, *starting.new_agents(self._place)
        )
        with self._place.writing() as store:
            put = None if source is None else partial(starting.put_text, self._place, store, source)
            amend_thread(store, self._place.caller, request, put=put)

    def fork(
        self,
        *,
        at: str | None = None,
        from_role: str | None = None,
        reason: str = "",
        workdir: str | os.PathLike[str] | None = None,
    ) -> "TaskHandle":
        """Start a task that goes on from a step of this one, with the state and place of then.

        *at* is the number or the hash of a step, by default the newest; *from_role* repeats that
        role's newest turn. Of a task that has split it splits anew. ``Refused``: no such step.
        """
        request = ForkRequest(self.task_id, at, from_role, reason, values.to_path(workdir))
        thread = starting.new_task_id(self._place)
        with self._place.writing() as store:
            fork_thread(store, self._place.caller, request, thread=thread)
        return TaskHandle(self._place, thread)

    def files(self, step: int | str | None = None) -> values.TaskFiles:
        """Return what *step* changed in the project: its number, its hash or a commit.

        None: all that changed since the first step. ``Refused``: no such step, or nothing recorded.
        """
        named = None if step is None else str(step)
        store = self._place.open()
        return values.build_task_files(find_files(store, self._place.environ, self.task_id, named))

    def restore(self, step: int | str, *, before: bool = False) -> values.TaskFiles:
        """Make the project's files as they were after *step*, or *before* it; return what changed.

        What is there is recorded first: restoring ``before`` of the result undoes this. All files
        change or none. ``Conflict``: a file that is in no commit is in the way, or an agent works.
        """
        return values.build_task_files(self._steer(restore_files, str(step), is_before=before))

    def _steer(self, change: Callable[..., Changed], *words: Any, **more: Any) -> Changed:
        with self._place.writing() as store:
            return change(store, self._place.caller, self.task_id, *words, **more)

    @contextmanager
    def _stepping(
        self, agent: starting.AgentsByRole | str | None, jobs: int = 4, *, trust: bool = False
    ) -> Iterator[tuple[Store, StepRequest]]:
        choice = Choice(starting.to_agent_words(agent), self._place.agent, trust)
        player = RolePlayer(self._place.players, self._place.now_ms, self._place.memory)
        with self._place.writing() as store:
            try:
                yield store, StepRequest(self.task_id, player.play, choice, jobs=jobs)
            except TurnInterrupted as error:
                if player.was_interrupted:
                    # A program that uses the library expects Ctrl-C as KeyboardInterrupt.
                    raise KeyboardInterrupt(error.message) from error
                raise
