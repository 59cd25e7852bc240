"""Task status as a value. Times are in milliseconds since 1970. Source: seed 004, TaskHandle."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, cast

from uwf_git.commands.inspect.show import Moment, read_moment, view_moment
from uwf_git.errors import UwfError
from uwf_git.library.place import Place
from uwf_git.model.thread import ENDED, TASK_WORDS, Status
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition import START

TaskState = Status | Literal["running"]
"""``running`` is never stored: a process works on the task now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWaiting:
    """What a task waits for."""

    role: str
    until: int | None
    """When the usage limit ends that an agent hit; None: the task waits for a person."""


class _Later:
    """The document of a status, read when it is first asked for."""

    def __init__(self, read: Callable[[], dict[str, Any]]) -> None:
        self._read = read

    @cached_property
    def document(self) -> Mapping[str, Any]:
        return MappingProxyType(self._read())


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """The status and state of a task at one moment.

    ``prompt``, ``current_node``, ``next``, ``last_update_time`` and ``document`` take more reading,
    which is done when one of them is first asked for, of the task as it was at that moment; it
    raises ``StoreDamaged`` if that cannot be read.
    """

    task_id: str
    workflow_name: str
    workflow: str
    """The hash of its workflow version."""

    status: TaskState
    task_status: str
    """The status in the words of seed 004: ``pending`` for ready, ``cancelled`` for killed."""

    last_node: str | None
    """The role that took the newest step; None before the first."""

    depth: int
    """How many steps there are."""

    parent_task_id: str | None
    """The task whose agent started this one."""

    head: str
    """The hash of the newest step."""

    state: Mapping[str, Any]
    start_time: int
    waiting: TaskWaiting | None
    usage: Mapping[str, Any]
    """The usage that its agents reported, summed."""

    _has_ended: bool = field(repr=False)
    _has_failed: bool = field(repr=False)
    _later: _Later = field(repr=False, compare=False)

    @property
    def document(self) -> Mapping[str, Any]:
        """The document of `uwf thread show`: agents, limits, the newest step, the question."""
        return self._later.document

    @property
    def prompt(self) -> str:
        """What the task is to do."""
        return cast("str", self.document["prompt"])

    @property
    def current_node(self) -> str | None:
        """The role at work, or whose turn it is; None if no role is left, or it is undecidable."""
        return cast("str | None", self.document["currentNode"])

    @property
    def current_iteration(self) -> int | None:
        """Which turn of that role this is, from 1."""
        return cast("int | None", self.document["currentIteration"])

    @property
    def next(self) -> str | None:
        """The role that takes the next step, or ``$END``; None after the end."""
        return cast("str | None", self.document["next"])

    @property
    def task_depth(self) -> int:
        """How deep the task is nested: 0, or one more than that of its parent."""
        return 0 if self.parent_task_id is None else cast("int", self.document["threadDepth"])

    @property
    def last_update_time(self) -> int:
        """When it last changed."""
        return cast("int", self.document["lastUpdateTime"])

    @property
    def end_time(self) -> int | None:
        """When it ended; None before that."""
        return self.last_update_time if self._has_ended else None

    @property
    def error(self) -> str | None:
        """Why the newest attempt failed, if no step has been taken since."""
        error = self.document["error"] if self._has_failed else None
        return None if error is None else cast("str", error["message"])


def query_task(place: Place, task_id: str) -> TaskStatus:
    """Read the status of a task: of one at rest, one commit and its now.json, without a lock.

    Raises:
        NoSuchThread, NotAStore: it is gone.
        StoreDamaged: it cannot be read.
    """
    try:
        moment = read_moment(place.open_to_look(), ThreadId(task_id))
        return _build_status(place, moment)
    except UwfError:
        # The store may have been repaired or removed since it was opened.
        return _build_status(place, read_moment(place.open(), ThreadId(task_id)))


def _build_status(place: Place, moment: Moment) -> TaskStatus:
    record = moment.snapshot.record
    present = moment.snapshot.get_present()
    waiting = present.waiting
    return TaskStatus(
        task_id=moment.thread,
        workflow_name=record.workflow_name,
        workflow=record.workflow,
        status=cast("TaskState", moment.status),
        task_status=TASK_WORDS.get(moment.status, moment.status),
        last_node=None if present.role == START else present.role,
        depth=record.depth,
        parent_task_id=record.parent_thread,
        head=record.node,
        state=present.state,
        start_time=present.started_at,
        waiting=None if waiting is None else TaskWaiting(role=waiting.role, until=waiting.until),
        usage=present.usage,
        _has_ended=record.status in ENDED,
        _has_failed=present.last_attempt is not None,
        _later=_Later(lambda: view_moment(place.open(), moment)),
    )
