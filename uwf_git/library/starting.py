"""Start a task: register its workflow, bind its agents, make its id."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.library.agents import AgentsByRole, list_player_words, to_agent_words
from uwf_git.library.limits import Limits, to_limit_names
from uwf_git.library.place import Place
from uwf_git.library.sources import WorkflowSource, find_source, read_source
from uwf_git.model.names import ALPHABET, ThreadId

if TYPE_CHECKING:
    from uwf_git.commands.workflow.build import PutWorkflow

_RANDOM_BITS = 80
_ULID_BITS = 130


class TaskRequest(NamedTuple):
    """The arguments of a new task."""

    workflow: WorkflowSource
    prompt: str | None
    agents: AgentsByRole | str | None
    limits: Limits | None
    workdir: str | None
    parent: str | None = None
    """The task whose agent starts it."""

    state: Mapping[str, Any] | None = None


def start_task(place: Place, request: TaskRequest) -> ThreadId:
    """Start a task; nothing runs. It raises what ``put_workflow`` and ``start_thread`` raise."""
    name = put_if_source(place, request.workflow, workdir=request.workdir)
    agents = (*list_player_words(place, name), *to_agent_words(request.agents))
    start = StartRequest(
        name,
        request.prompt,
        agents,
        place.agent,
        request.workdir,
        limits=to_limit_names(request.limits),
        parent=request.parent,
        state=request.state,
    )
    with place.writing() as store:
        return start_thread(store, place.caller, start, thread=new_task_id(place)).thread


def put_if_source(place: Place, workflow: WorkflowSource, *, workdir: str | None = None) -> str:
    """Return the name or hash of *workflow*; register it first unless it is one."""
    source = find_source(workflow, place.cwd)
    if source is None:
        return str(workflow)
    return put_source(place, workflow, workdir=workdir).workflow


def put_source(
    place: Place, workflow: WorkflowSource, *, workdir: str | None = None
) -> "PutWorkflow":
    """Register a workflow.

    Raises:
        BadUsage: it is a name.
    """
    from uwf_git.commands.workflow.build import put_workflow  # noqa: PLC0415 (YAML and schemas: 100 ms)

    text, path = read_source(workflow, place.cwd)
    with place.writing() as store:
        return put_workflow(store, place.caller, text, path=path, workdir=workdir)


def new_task_id(place: Place) -> ThreadId:
    """Make a ULID (https://github.com/ulid/spec); ids sort by time."""
    random = int.from_bytes(os.urandom(_RANDOM_BITS // 8))
    number = place.now_ms() << _RANDOM_BITS | random
    shifts = range(_ULID_BITS - 5, -1, -5)
    return ThreadId("".join(ALPHABET[number >> shift & 31] for shift in shifts))
