"""uwf: multi-agent workflows, one step per process, with git as the audit trail.

As a library::

    from uwf_git import TaskRuntime

    runtime = TaskRuntime()                      # the store that `uwf` would use here
    task = runtime.start("solve-issue", "Fix the login bug", agents="uwf-claude")
    run = task.run(on_step=lambda step: print(step.role, step.said))
    print(run.stopped, task.query().state)

A task is what the command line calls a thread: `uwf thread show`, `git log`, push and fetch work
on it. Of all names a page: `pydoc uwf_git.TaskRuntime`.

    TaskRuntime, TaskFilter, Limits         start tasks, find them, run many
    TaskHandle, TaskDraft                   one task, one draft of a workflow
    TaskRun, BackgroundRun                  what a run came to, where one is at work
    TaskStatus, TaskStep, TaskFiles, TaskEvent, TaskBranch, TaskWaiting    what is read of a task
    AgentContext, PlayerResult              what a player in Python is given, and gives
    UwfError                                what is raised: Refused (the state does not allow it),
        BadUsage (with a wrong type also a TypeError), AgentFailed, Conflict (another process was
        faster; trying again is safe), StoreDamaged, StoreFailed

Importing the package imports nothing else; a name is loaded on first access.
"""

# The constant of `typing`, whose import would cost more than this module.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from uwf_git.engine.turn_context import AgentContext
    from uwf_git.errors import (
        AgentFailed,
        BadUsage,
        Conflict,
        Refused,
        StoreDamaged,
        StoreFailed,
        UwfError,
    )
    from uwf_git.library.handle import TaskHandle
    from uwf_git.library.players import PlayerResult
    from uwf_git.library.runtime import TaskDraft, TaskFilter, TaskRuntime
    from uwf_git.library.starting import Limits
    from uwf_git.library.values import (
        BackgroundRun,
        TaskBranch,
        TaskEvent,
        TaskFiles,
        TaskRun,
        TaskStatus,
        TaskStep,
        TaskWaiting,
    )

__all__ = [
    "AgentContext",
    "AgentFailed",
    "BackgroundRun",
    "BadUsage",
    "Conflict",
    "Limits",
    "PlayerResult",
    "Refused",
    "StoreDamaged",
    "StoreFailed",
    "TaskBranch",
    "TaskDraft",
    "TaskEvent",
    "TaskFiles",
    "TaskFilter",
    "TaskHandle",
    "TaskRun",
    "TaskRuntime",
    "TaskStatus",
    "TaskStep",
    "TaskWaiting",
    "UwfError",
]

_HOMES = {
    "uwf_git.engine.turn_context": ("AgentContext",),
    "uwf_git.errors": (
        "AgentFailed",
        "BadUsage",
        "Conflict",
        "Refused",
        "StoreDamaged",
        "StoreFailed",
        "UwfError",
    ),
    "uwf_git.library.handle": ("TaskHandle",),
    "uwf_git.library.starting": ("Limits",),
    "uwf_git.library.players": ("PlayerResult",),
    "uwf_git.library.runtime": ("TaskDraft", "TaskFilter", "TaskRuntime"),
    "uwf_git.library.values": (
        "BackgroundRun",
        "TaskBranch",
        "TaskEvent",
        "TaskFiles",
        "TaskRun",
        "TaskStatus",
        "TaskStep",
        "TaskWaiting",
    ),
}


def __getattr__(name: str) -> object:
    """Load a name on first access (PEP 562)."""
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module  # noqa: PLC0415 (costs time that `import uwf_git` must not)

            found: object = getattr(import_module(home), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
