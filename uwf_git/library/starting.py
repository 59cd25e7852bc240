"""Start a task: register its workflow, bind its agents, make its id."""

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.errors import BadUsage
from uwf_git.library.limits import Limits, to_limit_names
from uwf_git.library.place import Place
from uwf_git.library.players import PREFIX
from uwf_git.library.sources import WorkflowSource, find_source, read_source
from uwf_git.model.crockford import ALPHABET
from uwf_git.model.thread_id import ThreadId

if TYPE_CHECKING:
    from uwf_git.commands.workflow.put import PutWorkflow

AgentsByRole = Mapping[str, str | Mapping[str, Any]]
"""A command by role, or settings: ``{"command": …, "protocol": …, "timeout": s, "env": {…}}``."""

_RANDOM_BITS = 80
_ULID_BITS = 130


class BadSettings(BadUsage):
    """The settings of an agent are no JSON."""

    code = "bad-settings"

    def __init__(self, role: str, problem: str) -> None:
        super().__init__(
            f"the agent of {role} cannot be written as JSON: {problem}",
            hint='give a command, or a dict such as {"command": "uwf-claude", "timeout": 60}',
            role=role,
        )


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
    agents = (*_player_agents(place, name), *to_agent_words(request.agents))
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
        NotASource: it is a name.
    """
    from uwf_git.commands.workflow.put import (  # noqa: PLC0415 (YAML and schemas: 100 ms)
        put_workflow,
    )

    text, path = read_source(workflow, place.cwd)
    with place.writing() as store:
        return put_workflow(store, place.caller, text, path=path, workdir=workdir)


def to_agent_words(agents: AgentsByRole | str | None) -> tuple[str, ...]:
    """Return agents as `--agent` takes them: a command for every role, or ROLE=… for some.

    Raises:
        BadSettings: settings cannot be written as JSON.
    """
    if agents is None:
        return ()
    if isinstance(agents, str):
        return (agents,)
    return tuple(
        f"{role}={agent if isinstance(agent, str) else _write_settings(role, agent)}"
        for role, agent in agents.items()
    )


def _write_settings(role: str, settings: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(settings), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadSettings(role, str(error)) from None


def new_task_id(place: Place) -> ThreadId:
    """Make a ULID (https://github.com/ulid/spec); ids sort by time."""
    random = int.from_bytes(os.urandom(_RANDOM_BITS // 8))
    number = place.now_ms() << _RANDOM_BITS | random
    shifts = range(_ULID_BITS - 5, -1, -5)
    return ThreadId("".join(ALPHABET[number >> shift & 31] for shift in shifts))


def _player_agents(place: Place, workflow: str) -> tuple[str, ...]:
    """Bind the functions to the roles of their names; later words for a role override these."""
    if not place.players:
        return ()
    roles = find_workflow(place.open(), workflow, cwd=place.cwd).workflow.roles
    return tuple(f"{role}={PREFIX}{role}" for role in roles if role in place.players)
