"""Task status: where a task stands, in the words of who asks for it in Python.

Owns: the values that a query gives. Knows nothing of: how they are found out (thread_show).
Always true: a status never changes; asking again makes a new one. Times are in milliseconds since
1970. Source: seed 004, TaskHandle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, cast

from uwf_git.model.thread import Status

TaskState = Status | Literal["running"]
"""``running`` is never stored: it is a task on which somebody is at work now, in any process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWaiting:
    """Whom or what a task waits for."""

    role: str
    until: int | None
    """When the usage limit ends that an agent has hit; None: a person is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """Where a task stands at one moment."""

    task_id: str
    workflow_name: str
    workflow: str
    """The hash of the version that it runs."""

    status: TaskState
    prompt: str
    current_node: str | None
    """The role that has taken the newest step; None before the first."""

    current_iteration: int
    """How many turns that role has had."""

    depth: int
    """How many steps there are."""

    head: str
    """The hash of the newest step."""

    state: Mapping[str, Any]
    start_time: int
    last_update_time: int
    end_time: int | None
    """None as long as it has not ended."""

    error: str | None
    """Why the newest try failed, if no step has been taken since."""

    waiting: TaskWaiting | None
    usage: Mapping[str, Any]
    """What its agents said they have spent."""

    document: Mapping[str, Any]
    """All of it, as `uwf thread show` prints it: agents, limits, the newest step, the question."""


def read_status(document: dict[str, Any]) -> TaskStatus:
    """Make a status of what ``show_thread`` gives."""
    waiting = document.get("waiting")
    error = document["error"]
    return TaskStatus(
        task_id=document["thread"],
        workflow_name=document["workflowName"],
        workflow=document["workflow"],
        status=cast("TaskState", document["status"]),
        prompt=document["prompt"],
        current_node=document["currentNode"],
        current_iteration=document["currentIteration"],
        depth=document["depth"],
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
