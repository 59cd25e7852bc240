"""Outcomes: what comes of stepping and driving a task.

Owns: the values that ``step``, ``run`` and ``run_in_background`` give.
Knows nothing of: how a step is taken. Always true: they never change.
"""

from dataclasses import dataclass

from uwf_git.commands.drive_thread import Driven, StoppedBy
from uwf_git.commands.stepped import Stepped
from uwf_git.errors import AgentFailed
from uwf_git.library.status import TaskState, TaskWaiting


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStep:
    """A task after a step."""

    task_id: str
    status: TaskState
    role: str | None
    """Who took the step, or whose turn a person has; None when the task ended."""

    head: str
    """The hash of the newest step."""

    depth: int
    """How many steps there are."""

    said: str
    """What happened, in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """A task after it was driven."""

    task_id: str
    status: TaskState
    stopped: StoppedBy
    """Why it was driven no further."""

    steps: int
    """How many steps were taken."""

    last: TaskStep
    waiting: TaskWaiting | None
    failure: AgentFailed | None
    """Why the last try failed, if that is what stopped it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundRun:
    """A task that a process of its own drives."""

    task_id: str
    pid: int
    log: str
    """The file in which it leaves what it has to say."""


def tell_step(stepped: Stepped) -> TaskStep:
    """Give a step in the words of this package."""
    return TaskStep(
        task_id=stepped.thread,
        status=stepped.status,
        role=stepped.role,
        head=stepped.head,
        depth=stepped.depth,
        said=stepped.said,
    )


def tell_run(driven: Driven) -> TaskRun:
    """Give a drive in the words of this package."""
    waiting = driven.waiting
    return TaskRun(
        task_id=driven.last.thread,
        status=driven.last.status,
        stopped=driven.stopped,
        steps=driven.steps,
        last=tell_step(driven.last),
        waiting=None if waiting is None else TaskWaiting(role=waiting.role, until=waiting.until),
        failure=driven.failure,
    )
