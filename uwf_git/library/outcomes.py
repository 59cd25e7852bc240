"""The values that ``step``, ``run`` and ``run_in_background`` of a task return."""

from collections.abc import Callable
from dataclasses import dataclass

from uwf_git.commands.caller import Caller
from uwf_git.commands.drive.drive_thread import Driven, StoppedBy, Watcher
from uwf_git.commands.step.branches import check_branches
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.next_move import find_next_move
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.errors import AgentFailed
from uwf_git.library.place import Place
from uwf_git.library.status import TaskState, TaskWaiting
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import read_snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStep:
    """A task after a step."""

    task_id: str
    status: TaskState
    role: str | None
    """The role that took the step or waits for a person; None when the task ended."""

    next: str | None
    """The role that takes the next step, or ``$END``; None after the end."""

    head: str
    """The hash of the newest step."""

    depth: int
    """How many steps there are."""

    said: str
    """What happened, in one line."""


OnStep = Callable[[TaskStep], None]
"""Called after each step of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """A task after it was driven."""

    task_id: str
    status: TaskState
    stopped: StoppedBy
    """Why the run ended."""

    steps: int
    """How many steps were taken."""

    last: TaskStep
    waiting: TaskWaiting | None
    failure: AgentFailed | None
    """Why the last attempt failed, if that stopped the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundRun:
    """A task that a background process drives."""

    task_id: str
    pid: int
    log: str
    """The file that has its output."""


def build_task_step(store: Store, stepped: ThreadResult) -> TaskStep:
    """Convert a ThreadResult of a thread in *store*."""
    return TaskStep(
        task_id=stepped.thread,
        status=stepped.status,
        role=stepped.role,
        next=find_next_move(read_snapshot(store, stepped.commit)).role,
        head=stepped.head,
        depth=stepped.depth,
        said=stepped.said,
    )


def take_task_step(store: Store, caller: Caller, request: StepRequest) -> TaskStep:
    """Take the next step of a task, or one of each of its branches.

    Raises:
        What ``step_thread`` and ``check_branches`` raise.
    """
    stepped = step_thread(store, caller, request)
    check_branches(stepped)
    return build_task_step(store, stepped)


def build_task_run(store: Store, driven: Driven) -> TaskRun:
    """Convert a Driven of a thread in *store*."""
    waiting = driven.waiting
    return TaskRun(
        task_id=driven.last.thread,
        status=driven.last.status,
        stopped=driven.stopped,
        steps=driven.steps,
        last=build_task_step(store, driven.last),
        waiting=None if waiting is None else TaskWaiting(role=waiting.role, until=waiting.until),
        failure=driven.failure,
    )


def build_watcher(place: Place, store: Store, on_step: OnStep | None) -> Watcher:
    """Return a watcher of a drive that follows up at each event and calls *on_step*."""

    def step(stepped: ThreadResult) -> None:
        place.follow_up(store)
        if on_step is not None:
            on_step(build_task_step(store, stepped))

    def announce(*_facts: object) -> None:
        place.follow_up(store)

    return Watcher(step, announce, announce)
