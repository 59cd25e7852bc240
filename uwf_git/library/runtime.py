"""The task runtime: find a store, start, list and find its tasks, draft a workflow.

The verbs of one task are in handle.py.

A runtime keeps nothing open, so that many may exist, in several Python threads.
Source: seed 004, TaskRuntime and TaskFilter.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Any

from uwf_git.agents.group import cancellable, wait_for_one
from uwf_git.commands.admin import init_store, switch_on_debug_log
from uwf_git.commands.inspect.list import ASKED, ListRequest, list_thread_rows
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.turn.branches import resolve_or_begin
from uwf_git.commands.turn.next_move import FUNCTION
from uwf_git.errors import UwfError
from uwf_git.library import starting
from uwf_git.library.arguments import WrongArgument, check_arguments, check_number
from uwf_git.library.handle import TaskHandle
from uwf_git.library.players import PlayerFunction, StepMemory
from uwf_git.library.values import (
    KeptStore,
    OnStep,
    Place,
    TaskEvent,
    TaskRun,
    TaskStatus,
    TaskStep,
    checked_clock,
    to_path,
    walk_events,
)
from uwf_git.model.names import ThreadId
from uwf_git.store.store import find_store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import read_root, read_snapshot
from uwf_git.surroundings import read_clock_ms

if TYPE_CHECKING:
    # YAML and schemas take 100 ms to import.
    from uwf_git.commands.workflow.build import PutWorkflow


_MOST_ROWS = 2**31


@check_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks to list; by default all that have not ended."""

    ended: bool = False
    """Whether to include ended tasks; an ended status in *statuses* includes them too."""

    workflow: str | None = None
    """Only tasks of the workflow of this name or hash."""

    statuses: Collection[str] = ()
    """Only those with one of these; ``damaged`` means a task that cannot be read.

    The words of seed 004 count too: ``pending`` is ready, ``cancelled`` is killed.
    """

    status: str | None = None
    """The same for one status."""

    after: int | None = None
    """Only those that changed at this time or later, in milliseconds since 1970."""

    before: int | None = None
    """Only those that last changed before this time."""

    parent: str | None = None
    """Only its branches, and those that its agents started, ended ones as well."""

    branches: bool = False
    """Whether to list branches beside the tasks that have split into them.

    With *statuses* or *parent* they are listed anyway.
    """

    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A workflow that an agent wrote; nothing is put."""

    task_id: str
    """The task in which it was written."""

    name: str
    """The name of the workflow; empty if it has problems."""

    file: str
    """The workflow file, which ``TaskRuntime.put`` takes."""

    why: str
    """Why it is as it is, in the agent's words."""

    questions: tuple[str, ...]
    """What the agent has to know first; then *file* is no workflow."""

    problems: tuple[str, ...]
    """What is wrong with the last try, each with its line; do not put a file that has some."""

    roles: tuple[str, ...]
    """The roles that act if each answers the least that its schema allows."""


@check_arguments
class TaskRuntime:
    """The tasks of a store.

    *repo* is its git directory. By default the store is found as on the command line: $UWF_REPO,
    else the nearest enclosing repository that is a store, else `~/.uwf/store.git`, which is made
    on first use. *agent* plays roles that have none; by default $UWF_AGENT, else the one in git
    config. *environ* and *cwd* are the environment and directory of agents, by default those of
    this process; *now_ms* is the clock.

    *players* are Python functions that play roles in this process: the context of a turn in, the
    role's meta or a ``PlayerResult`` out. A function plays the role of its name in tasks that are
    started here, in workflows inside too, and roles that are appended or amended here; and every
    role whose agent is ``python:NAME``.

    With *create*, a *repo* that does not exist is made, as by `uwf init`.

    Raises:
        NotAStore, Refused: there is no store to use.
        Refused: the folder *repo* holds other files.
    """

    def __init__(
        self,
        repo: str | os.PathLike[str] | None = None,
        *,
        create: bool = False,
        agent: str | None = None,
        players: Mapping[str, PlayerFunction] | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        now_ms: Callable[[], int] = read_clock_ms,
    ) -> None:
        given = dict(os.environ if environ is None else environ)
        here = os.path.abspath(os.getcwd() if cwd is None else cwd)
        if given.get("UWF_DEBUG"):
            given = switch_on_debug_log(given, cwd=here)
        named = given.get("UWF_REPO") if repo is None else os.fspath(repo)
        if create and named:
            store = init_store(named, here, given).store
        else:
            store = find_store(named or None, here, given, create=True)
        default = agent or given.get("UWF_AGENT") or None
        clock = checked_clock(now_ms)
        self._place = Place(
            store.path, here, given, clock, default, dict(players or {}), KeptStore(), StepMemory()
        )

    def __repr__(self) -> str:
        return f"<TaskRuntime {self.path}>"

    @property
    def path(self) -> str:
        """The git directory."""
        return self._place.path

    def put(self, workflow: starting.WorkflowSource) -> "PutWorkflow":
        """Register a workflow: YAML, the path of a file, or a definition as a dict.

        The agents that it names are trusted in this store from now on. Putting the same workflow
        again changes nothing.

        Raises:
            Refused: it is invalid; the message lists every problem.
        """
        return starting.put_source(self._place, workflow)

    def draft(
        self, wish: str, *, agent: str | None = None, on_step: OnStep | None = None
    ) -> TaskDraft:
        """Have an agent write a workflow for a wish, in a task of its own; nothing is put.

        It has three tries. *agent* is its command; without one the player ``drafter`` writes it,
        else the default agent. *on_step* is called after each step.

        Raises:
            AgentFailed: the agent failed.
            Refused: there is no agent, the wish is empty, or the task stopped before its end.
        """
        from uwf_git.commands import draft as drafts  # noqa: PLC0415 (YAML and schemas: 100 ms)

        place = self._place
        if agent is None and drafts.DRAFTER in place.players:
            agent = FUNCTION + drafts.DRAFTER
        # A player is no program; without one the first turn says what is missing.
        request = drafts.DraftRequest(wish, agent, place.agent, needs_agent=False)
        with place.writing() as store:
            begun = drafts.start_draft(
                store, place.caller, request, thread=starting.new_task_id(place)
            )
        run = TaskHandle(place, begun.thread).run(on_step=on_step)
        if run.stopped == "failed" and run.failure is not None:
            raise run.failure
        if run.stopped != "end":
            raise drafts.draft_stopped(begun.thread, run.status)
        draft = drafts.read_draft(place.open(), place.cwd, begun.thread)
        return TaskDraft(
            task_id=begun.thread,
            name=draft.judgement.name,
            file=draft.judgement.source,
            why=draft.why,
            questions=draft.questions,
            problems=tuple(map(drafts.describe_problem, draft.judgement.problems)),
            roles=draft.judgement.roles,
        )

    def start(
        self,
        workflow: starting.WorkflowSource,
        prompt: str | None = None,
        *,
        state: Mapping[str, Any] | None = None,
        agents: starting.AgentsByRole | str | None = None,
        limits: starting.Limits | None = None,
        workdir: str | os.PathLike[str] | None = None,
        parent: str | None = None,
    ) -> TaskHandle:
        """Start a task; nothing runs before it is stepped or run.

        *workflow* is a name or a hash, or anything that ``put`` accepts, which is put first.
        *prompt* says what is to be done; a flow may go without one. *state* has members of the
        state that the task begins with, over those of the workflow.
        *agents* is a command for every role; or, by role, commands or settings such as
        ``{"command": "uwf-claude", "timeout": 60, "env": {"LANG": "C"}}``. *workdir* is where the
        agents run, by default the runtime's directory. *parent* is the task whose agent starts it,
        by default that of $UWF_THREAD_ID; a player names its ``context.thread_id``.

        Raises:
            Refused: there is no such workflow, role, limit or directory, or the prompt is empty.
        """
        where = to_path(workdir)
        name = str(workflow)
        if starting.find_source(workflow, self._place.cwd) is not None:
            name = starting.put_source(self._place, workflow, workdir=where).workflow
        words = (*starting.list_player_words(self._place, name), *starting.to_agent_words(agents))
        request = StartRequest(
            name,
            prompt,
            words,
            self._place.agent,
            where,
            limits=starting.to_limit_names(limits),
            parent=parent,
            state=state,
        )
        thread = starting.new_task_id(self._place)
        with self._place.writing() as store:
            start_thread(store, self._place.caller, request, thread=thread)
        return TaskHandle(self._place, thread)

    def task(self, task_id: str) -> TaskHandle:
        """Return the task of this id, or of a unique prefix of it; a new branch begins.

        Raises:
            Refused: no task has it, or several do.
        """
        return TaskHandle(self._place, resolve_or_begin(self._place.open(), task_id).thread)

    def list(
        self, wanted: TaskFilter | None = None, *, status: str | None = None
    ) -> tuple[TaskHandle, ...]:
        """List the tasks that *wanted* selects, newest first; with *status* those of that one."""
        wanted = wanted or TaskFilter()
        asked = wanted if status is None else replace(wanted, status=status)
        rows = list_thread_rows(self._place.open(), build_list_request(asked))
        return tuple(TaskHandle(self._place, row["thread"]) for row in rows)

    def events(
        self, *, since: str | None = None, follow: bool = False, with_state: bool = False
    ) -> Iterator[TaskEvent]:
        """Yield the events of all tasks after the event *since*, oldest first.

        With *follow*, wait for more and never end; without *since*, skip older events.

        Raises:
            Refused: there is no such event.
        """
        return walk_events(self._place, since=since, follow=follow, with_state=with_state)

    def query(self, task_id: str) -> TaskStatus:
        """Return the status of a task; see ``TaskHandle.query``."""
        return self.task(task_id).query()

    def step(self, task_id: str) -> TaskStep:
        """Take the next step of a task; see ``TaskHandle.step``."""
        return self.task(task_id).step()

    def run(
        self,
        task_id: str,
        *,
        until: str | None = None,
        max_steps: int | None = None,
        on_step: OnStep | None = None,
        jobs: int = 4,
    ) -> TaskRun:
        """Take steps of a task until there is a reason to stop; see ``TaskHandle.run``."""
        return self.task(task_id).run(until=until, max_steps=max_steps, on_step=on_step, jobs=jobs)

    def run_all(
        self, tasks: Iterable[TaskHandle], *, jobs: int = 8, on_step: OnStep | None = None
    ) -> tuple[TaskRun, ...]:
        """Run *tasks* as ``TaskHandle.run`` does, *jobs* at a time, and return their runs in order.

        In place of a branch its whole task is run, once for all its branches. Each run calls its
        players and *on_step* in a Python thread of its own.

        Raises:
            UwfError: the first one that a run raised, once all have stopped.
            KeyboardInterrupt: Ctrl-C; the attempts are recorded.
        """
        check_number("TaskRuntime.run_all(jobs=…)", jobs, least=1)
        cancelled = Event()

        def run(task: TaskHandle) -> TaskRun:
            with cancellable(cancelled):
                return task.run(on_step=on_step)

        runs: dict[TaskHandle, Future[TaskRun]] = {}
        with ThreadPoolExecutor(jobs) as pool:
            try:
                wholes = []
                for task in tasks:
                    wholes.append(whole := self._find_whole(task))
                    if whole not in runs:
                        runs[whole] = pool.submit(run, whole)
                pending = set(runs.values())
                while pending:
                    pending -= wait_for_one(pending)
            except KeyboardInterrupt:
                cancelled.set()
                pool.shutdown(cancel_futures=True)
                raise
        return tuple(runs[whole].result() for whole in wholes)

    def _find_whole(self, task: TaskHandle) -> TaskHandle:
        """Return the task of which *task* is a branch, the outermost; else *task*."""
        store = self._place.open_to_look()
        # What cannot be read is told by its run.
        with suppress(UwfError):
            tip = read_snapshot(store, get_head(store, ThreadId(task.task_id)).commit)
            if tip.get_trunk() is not None:
                return TaskHandle(self._place, read_root(store, tip).record.thread)
        return task

    def wait(self, task_id: str, timeout_s: float | None = None) -> TaskStatus:
        """Wait until no process works on a task; see ``TaskHandle.wait``."""
        return self.task(task_id).wait(timeout_s)

    def pause(self, task_id: str, reason: str = "") -> None:
        """Let no further step of a task begin; see ``TaskHandle.pause``."""
        self.task(task_id).pause(reason)

    def resume(self, task_id: str, reason: str = "") -> None:
        """Let a paused task continue; see ``TaskHandle.resume``."""
        self.task(task_id).resume(reason)

    def cancel(self, task_id: str, reason: str = "") -> None:
        """End a task for good; see ``TaskHandle.cancel``."""
        self.task(task_id).cancel(reason)

    def interrupt(self, task_id: str, reason: str) -> None:
        """End the agent of a task and pause; see ``TaskHandle.interrupt``."""
        self.task(task_id).interrupt(reason)

    def append(
        self,
        task_id: str,
        addition: starting.AppendedSource,
        reason: str = "",
        *,
        to: str | None = None,
    ) -> None:
        """Add to the workflow of a task; see ``TaskHandle.append_nodes``."""
        self.task(task_id).append_nodes(addition, reason, to=to)

    def patch_state(self, task_id: str, patch: Mapping[str, Any], reason: str = "") -> None:
        """Change the state of a task by a JSON merge patch; see ``TaskHandle.update_state``."""
        self.task(task_id).update_state(patch, reason)


def build_list_request(wanted: TaskFilter) -> ListRequest:
    """Convert *wanted* to a ListRequest.

    Raises:
        WrongArgument: a field has a wrong type or value.
    """
    check_number("TaskFilter(offset=…)", wanted.offset, least=0)
    check_number("TaskFilter(limit=…)", wanted.limit, least=0)
    statuses = {*wanted.statuses, *([] if wanted.status is None else [wanted.status])}
    unknown = sorted(statuses.difference(ASKED))
    if unknown:
        raise WrongArgument(
            "TaskFilter(statuses=…)",
            f"{unknown[0][:60]!r} is none of {', '.join(sorted(ASKED))}",
        )
    return ListRequest(
        archived=wanted.ended,
        workflow=wanted.workflow,
        statuses=frozenset(statuses),
        after_ms=wanted.after,
        before_ms=wanted.before,
        # More than any store has; islice takes no larger numbers.
        offset=min(wanted.offset, _MOST_ROWS),
        parent=wanted.parent,
        branches=wanted.branches,
        limit=None if wanted.limit is None else min(wanted.limit, _MOST_ROWS),
    )
