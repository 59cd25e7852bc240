"""Starting: how a task comes about, from what a caller hands over.

Owns: new ids, the registering of a workflow that was handed over whole, who plays what.
Knows nothing of: what happens to a task afterwards.
Always true: an id sorts by its time, and no two are alike.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from uwf_git.commands.find_workflow import find_workflow
from uwf_git.commands.thread_start import StartRequest, start_thread
from uwf_git.library.limits import Limits, name_limits
from uwf_git.library.place import Place
from uwf_git.library.players import PREFIX
from uwf_git.library.sources import WorkflowSource, find_source, read_source
from uwf_git.model.crockford import ALPHABET
from uwf_git.model.thread_id import ThreadId

if TYPE_CHECKING:
    from uwf_git.commands.workflow_put import PutWorkflow

_RANDOM_BITS = 80
_ULID_BITS = 130


class TaskRequest(NamedTuple):
    """What is asked of a new task."""

    workflow: WorkflowSource
    prompt: str
    agents: Mapping[str, str] | str | None
    limits: Limits | None
    workdir: str | None


def start_task(place: Place, request: TaskRequest) -> ThreadId:
    """Begin a task; nothing runs.

    Raises:
        What ``put_workflow`` and ``start_thread`` raise.
    """
    name = put_if_source(place, request.workflow)
    agents = (*_player_agents(place, name), *write_agents(request.agents))
    asked = StartRequest(
        name,
        request.prompt,
        agents,
        place.agent,
        request.workdir,
        limits=name_limits(request.limits),
    )
    with place.writing() as store:
        return start_thread(store, place.caller, asked, thread=new_task_id(place)).thread


def put_if_source(place: Place, workflow: WorkflowSource) -> str:
    """Give the name or the hash of *workflow*, which is registered if it was handed over whole."""
    source = find_source(workflow, place.cwd)
    return str(workflow) if source is None else put_source(place, workflow).workflow


def put_source(place: Place, workflow: WorkflowSource) -> "PutWorkflow":
    """Register a workflow.

    Raises:
        NotASource: it is a name only.
        What ``put_workflow`` raises.
    """
    from uwf_git.commands.workflow_put import (  # noqa: PLC0415 (YAML and schemas: 100 ms)
        put_workflow,
    )

    text, path = read_source(workflow, place.cwd)
    with place.writing() as store:
        return put_workflow(store, place.caller, text, path=path)


def write_agents(agents: Mapping[str, str] | str | None) -> tuple[str, ...]:
    """Give agents as they are typed: a command for every role, or one for each that is named."""
    if agents is None:
        return ()
    if isinstance(agents, str):
        return (agents,)
    return tuple(f"{role}={command}" for role, command in agents.items())


def new_task_id(place: Place) -> ThreadId:
    """Make an id that no other task has: the time, then randomness.

    Source: https://github.com/ulid/spec.
    """
    random = int.from_bytes(os.urandom(_RANDOM_BITS // 8))
    number = place.now_ms() << _RANDOM_BITS | random
    shifts = range(_ULID_BITS - 5, -1, -5)
    return ThreadId("".join(ALPHABET[number >> shift & 31] for shift in shifts))


def _player_agents(place: Place, workflow: str) -> tuple[str, ...]:
    """Let functions play the roles that have their names, unless another agent is named."""
    if not place.players:
        return ()
    roles = find_workflow(place.open(), workflow, cwd=place.cwd).workflow.roles
    return tuple(f"{role}={PREFIX}{role}" for role in roles if role in place.players)
