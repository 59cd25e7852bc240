"""Task status as a value. Times are in milliseconds since 1970. Source: seed 004, TaskHandle."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, cast

from uwf_git.model.thread import Status

TaskState = Status | Literal["running"]
"""``running`` is never stored: a process works on the task now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWaiting:
    """What a task waits for."""

    role: str
    until: int | None
    """When the usage limit ends that an agent hit; None: the task waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """The status and state of a task at one moment."""

    task_id: str
    workflow_name: str
    workflow: str
    """The hash of its workflow version."""

    status: TaskState
    prompt: str
    task_status: str
    """The status in the words of seed 004: ``pending`` for ready, ``cancelled`` for killed."""

    current_node: str | None
    """The role at work, or whose turn it is; None if no role is left, or none can be decided."""

    current_iteration: int | None
    """Which turn of that role this is, from 1."""

    last_node: str | None
    """The role that took the newest step; None before the first."""

    next: str | None
    """The role that takes the next step, or ``$END``; None after the end."""

    depth: int
    """How many steps there are."""

    parent_task_id: str | None
    """The task whose agent started this one."""

    task_depth: int
    """How deep the task is nested: 0, or one more than that of its parent."""

    head: str
    """The hash of the newest step."""

    state: Mapping[str, Any]
    start_time: int
    last_update_time: int
    end_time: int | None
    """None before it has ended."""

    error: str | None
    """Why the newest attempt failed, if no step has been taken since."""

    waiting: TaskWaiting | None
    usage: Mapping[str, Any]
    """The usage that its agents reported, summed."""

    document: Mapping[str, Any]
    """The document of `uwf thread show`: agents, limits, the newest step, the question."""


def read_status(document: dict[str, Any]) -> TaskStatus:
    """Convert a document of ``show_thread``."""
    waiting = document.get("waiting")
    error = document["error"]
    return TaskStatus(
        task_id=document["thread"],
        workflow_name=document["workflowName"],
        workflow=document["workflow"],
        status=cast("TaskState", document["status"]),
        prompt=document["prompt"],
        task_status=document["taskStatus"],
        current_node=document["currentNode"],
        current_iteration=document["currentIteration"],
        last_node=document["lastNode"],
        next=document["next"],
        depth=document["depth"],
        parent_task_id=document["parentThread"],
        task_depth=document["threadDepth"],
        head=document["head"],
        state=document["state"],
        start_time=document["startTime"],
        last_update_time=document["lastUpdateTime"],
        end_time=document["endTime"],
        error=None if error is None else error["message"],
        waiting=None
        if waiting is None
        else TaskWaiting(role=waiting["role"], until=waiting.get("until")),
        usage=document["usage"],
        document=MappingProxyType(document),
    )
