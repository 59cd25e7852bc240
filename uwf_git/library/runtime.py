"""The task runtime: the tasks of a store.

Owns: finding the store, starting and listing tasks, and finding the handle of one.
Knows nothing of: what a verb does with a task (handle.py).
Always true: a runtime keeps nothing open and remembers nothing of its tasks, so it can be made as
often as one likes, and used from several Python threads. Source: seed 004, TaskRuntime.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from uwf_git.commands.init_store import init_store
from uwf_git.commands.thread_list import list_rows
from uwf_git.library.events import EventQuery, TaskEvent, walk_events
from uwf_git.library.filter import TaskFilter, ask_rows
from uwf_git.library.handle import OnStep, TaskHandle
from uwf_git.library.limits import Limits
from uwf_git.library.outcomes import TaskRun, TaskStep
from uwf_git.library.place import Place, read_clock_ms, read_environ
from uwf_git.library.players import PlayerFunction
from uwf_git.library.sources import WorkflowSource
from uwf_git.library.starting import TaskRequest, put_source, start_task
from uwf_git.library.status import TaskStatus
from uwf_git.store.discover import find_store
from uwf_git.store.heads import resolve_thread

if TYPE_CHECKING:
    # It costs YAML and schemas, 100 ms.
    from uwf_git.commands.workflow_put import PutWorkflow


class TaskRuntime:
    """The tasks of a store.

    *repo* is its git directory; without one it is found as on the command line: $UWF_REPO, else
    the nearest enclosing repository that is a store, else `~/.uwf/store.git`, which is made on
    first use. *agent* plays a role for which nobody is named, else $UWF_AGENT, else what git
    config says. *environ* and *cwd* are what agents get and where they stand, those of this
    process unless they are given; *now_ms* is the clock.

    *players* are Python functions that play roles in this process: from the context of a turn to
    the role's meta, or to a ``PlayerResult``. A function plays the roles of tasks that are started
    here and have its name, and every role whose agent is ``python:NAME``.

    With *create* a *repo* that is not there is made, as by `uwf init`; without it, a store that
    was named is never made by accident.

    Raises:
        NotAStore, UnsupportedRepository, ForeignRepository: there is no store to use.
        NotEmpty: none can be made there.
    """

    def __init__(  # noqa: PLR0913 (named where they are given; each has a default that most want)
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
        given = read_environ() if environ is None else dict(environ)
        here = os.path.abspath(os.getcwd() if cwd is None else cwd)
        if given.get("UWF_DEBUG"):
            from uwf_git.commands.debug_output import (  # noqa: PLC0415 (few ask for it)
                log_as_asked,
            )

            given = log_as_asked(given, cwd=here)
        named = given.get("UWF_REPO") if repo is None else os.fspath(repo)
        if create and named:
            store = init_store(named, here, given).store
        else:
            store = find_store(named or None, here, given, create=True)
        default = agent or given.get("UWF_AGENT") or None
        self._place = Place(store.path, here, given, now_ms, default, dict(players or {}))

    def __repr__(self) -> str:
        return f"<TaskRuntime {self.path}>"

    @property
    def path(self) -> str:
        """The git directory."""
        return self._place.path

    def put(self, workflow: WorkflowSource) -> "PutWorkflow":
        """Register a workflow: YAML, the path of a file, or a definition as a dict.

        The agents that it names may run in this store from now on. Putting the same again changes
        nothing.

        Raises:
            Refused: it is not right; all its problems are told.
        """
        return put_source(self._place, workflow)

    def start(
        self,
        workflow: WorkflowSource,
        prompt: str,
        *,
        agents: Mapping[str, str] | str | None = None,
        limits: Limits | None = None,
        workdir: str | os.PathLike[str] | None = None,
    ) -> TaskHandle:
        """Begin a task; nothing runs before it is stepped or run.

        *workflow* is a name or a hash, or anything that ``put`` takes, which is put first.
        *agents* names who plays: a command for every role, or commands by role. *workdir* is
        where the agents run, else the runtime's directory.

        Raises:
            Refused: there is no such workflow, role, limit or directory, or the prompt is empty.
        """
        where = None if workdir is None else os.fspath(workdir)
        request = TaskRequest(workflow, prompt, agents, limits, where)
        return TaskHandle(self._place, start_task(self._place, request))

    def task(self, task_id: str) -> TaskHandle:
        """Give the task of this id, or of a beginning that no other id has.

        Raises:
            Refused: there is none, or there are several.
        """
        return TaskHandle(self._place, resolve_thread(self._place.open(), task_id))

    def list(self, wanted: TaskFilter | None = None) -> tuple[TaskHandle, ...]:
        """Give the tasks that are asked for, the newest first."""
        rows = list_rows(self._place.open(), ask_rows(wanted or TaskFilter()))
        return tuple(TaskHandle(self._place, row["thread"]) for row in rows)

    def events(
        self, *, since: str | None = None, follow: bool = False, with_state: bool = False
    ) -> Iterator[TaskEvent]:
        """Give what has happened to all tasks, oldest first, after the event *since*.

        With *follow* it never ends: it waits for more, and without *since* begins with now.

        Raises:
            Refused: there is no such event.
        """
        query = EventQuery(since=since, follow=follow, with_state=with_state)
        return walk_events(self._place, query)

    def query(self, task_id: str) -> TaskStatus:
        """Tell where a task stands."""
        return self.task(task_id).query()

    def step(self, task_id: str) -> TaskStep:
        """Take the next step of a task; what is raised is told at ``TaskHandle.step``."""
        return self.task(task_id).step()

    def run(
        self,
        task_id: str,
        *,
        until: str | None = None,
        max_steps: int | None = None,
        on_step: OnStep | None = None,
    ) -> TaskRun:
        """Drive a task until there is a reason to stop; see ``TaskHandle.run``."""
        return self.task(task_id).run(until=until, max_steps=max_steps, on_step=on_step)

    def wait(self, task_id: str, timeout_s: float | None = None) -> TaskStatus:
        """Wait until nobody is at work on a task; see ``TaskHandle.wait``."""
        return self.task(task_id).wait(timeout_s)

    def pause(self, task_id: str, reason: str = "") -> None:
        """Let no further step of a task begin; see ``TaskHandle.pause``."""
        self.task(task_id).pause(reason)

    def resume(self, task_id: str, reason: str = "") -> None:
        """Let a paused task go on; see ``TaskHandle.resume``."""
        self.task(task_id).resume(reason)

    def cancel(self, task_id: str, reason: str = "") -> None:
        """End a task for good; see ``TaskHandle.cancel``."""
        self.task(task_id).cancel(reason)

    def interrupt(self, task_id: str, reason: str) -> None:
        """Pause a task now, its agent ended; see ``TaskHandle.interrupt``."""
        self.task(task_id).interrupt(reason)

    def append(self, task_id: str, addition: WorkflowSource, reason: str = "") -> None:
        """Add roles and transitions to a task; see ``TaskHandle.append_nodes``."""
        self.task(task_id).append_nodes(addition, reason)

    def patch_state(self, task_id: str, patch: Mapping[str, Any], reason: str = "") -> None:
        """Change the state of a task by a JSON merge patch; see ``TaskHandle.update_state``."""
        self.task(task_id).update_state(patch, reason)
