"""Start a task: read its workflow, bind its agents, make its id."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from uwf_git.commands.turn.choose_agent import find_played
from uwf_git.commands.turn.next_move import FUNCTION
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.errors import BadUsage, Refused
from uwf_git.library.values import Place
from uwf_git.model.limits import LIMITS
from uwf_git.model.names import ThreadId, build_thread_id
from uwf_git.model.node import canonical
from uwf_git.model.yaml_render import render_yaml
from uwf_git.store.store import Store

if TYPE_CHECKING:
    from uwf_git.commands.workflow.build import PutWorkflow


# Agents of tasks: what a caller may give, as `--agent` takes it, and functions as agents.

AgentsByRole = Mapping[str, str | Mapping[str, Any]]
"""A command by role, or settings: ``{"command": …, "protocol": …, "timeout": s, "env": {…}}``."""


def to_agent_words(agents: AgentsByRole | str | None) -> tuple[str, ...]:
    """Return agents as `--agent` takes them: a command for every role, or ROLE=… for some.

    Raises:
        BadUsage: settings cannot be written as JSON.
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
        raise BadUsage(
            f"the agent of {role} cannot be written as JSON: {error!s}",
            code="bad-settings",
            hint='give a command, or a dict such as {"command": "uwf-claude", "timeout": 60}',
            role=role,
        ) from None


def new_agents(place: Place) -> tuple[str | None, dict[str, str]]:
    """Return who plays roles that a task gets later: the default agent, and each function."""
    return place.agent, {name: FUNCTION + name for name in place.players}


def list_player_words(place: Place, workflow: str) -> tuple[str, ...]:
    """Bind the functions to the roles of their names; later words for a role override these."""
    if not place.players:
        return ()
    found = find_workflow(place.open(), workflow, cwd=place.cwd)
    roles = find_played(found.workflow, found.closure).roles
    return tuple(f"{role}={FUNCTION}{role}" for role in roles if role in place.players)


# The limits of a task under their Python names; model/limits.py counts.


class Limits(TypedDict, total=False):
    """What a task may use up; None removes a limit, and a missing key keeps it."""

    max_steps: int | None
    max_execution_time: int | None
    """Milliseconds that agents run."""

    max_tokens: int | None
    max_cost: float | None
    """In the currency that the agents report."""


def to_limit_names(limits: Limits | None) -> dict[str, Any]:
    """Return *limits* under the names of a StartNode; an unknown name is refused later."""
    given: Mapping[str, Any] = limits or {}
    names = {limit.option[2:].replace("-", "_"): name for name, limit in LIMITS.items()}
    return {names.get(name, name): value for name, value in given.items()}


# Workflow sources: tell a workflow's name from a file, YAML text or a definition in Python.

WorkflowSource = str | bytes | os.PathLike[str] | Mapping[str, Any]
"""YAML (bytes, or a text of several lines), the path of such a file, or a definition as a dict.

A text of one line is a path if it holds a slash or ends in .yaml or .yml, as on the command line.
"""

AppendedSource = WorkflowSource | Sequence[Mapping[str, Any]]
"""What can be appended: the same, or a list of the nodes of a flow."""

# Far more than a workflow may have, so that the workflow reader refuses a larger one.
_MOST_BYTES = 2**26


class SourceText(NamedTuple):
    """A workflow in YAML."""

    text: bytes
    path: str | None
    """The path of its file, for its includes; None: it can include nothing."""


def find_source(given: AppendedSource, cwd: str) -> SourceText | None:
    """Read the workflow *given*; None if it is a name or a hash.

    Raises:
        NotCanonical: a definition holds a value that JSON lacks.
        Refused: the file cannot be read.
    """
    if isinstance(given, bytes):
        return SourceText(given, None)
    if isinstance(given, Mapping):
        return SourceText(render_yaml(canonical(dict(given))).encode(), None)
    if not isinstance(given, str | os.PathLike):
        return SourceText(render_yaml(canonical({"nodes": list(given)})).encode(), None)
    text = os.fspath(given)
    if isinstance(given, str):
        if "\n" in text:
            return SourceText(text.encode(errors="surrogatepass"), None)
        if os.sep not in text and not text.endswith((".yaml", ".yml")):
            return None
    path = os.path.join(cwd, text)
    try:
        with open(path, "rb") as file:
            return SourceText(file.read(_MOST_BYTES), path)
    except OSError as error:
        raise Refused(
            f"{path[:300]!r} cannot be read: {(error.strerror or str(error))}",
            code="unreadable-source",
            hint="a relative path begins at the runtime's cwd; `ls -l` shows who may read it",
            path=path,
        ) from error


def read_source(given: AppendedSource, cwd: str) -> SourceText:
    """Read the workflow *given*, as ``find_source``.

    Raises:
        BadUsage: it is a name.
    """
    source = find_source(given, cwd)
    if source is None:
        raise BadUsage(
            f"{str(given)[:60]!r} is neither YAML nor the path of a file",
            code="not-a-source",
            hint="a path holds a slash or ends in .yaml; YAML has several lines, or is bytes",
        )
    return source


# Start a task: register its workflow, bind its agents, make its id.


def put_source(
    place: Place, workflow: WorkflowSource, *, workdir: str | None = None
) -> "PutWorkflow":
    """Register a workflow.

    Raises:
        BadUsage: it is a name.
    """
    source = read_source(workflow, place.cwd)
    with place.writing() as store:
        return put_text(place, store, source, workdir=workdir)


def put_text(place: Place, store: Store, source: SourceText, **how: Any) -> "PutWorkflow":
    """Register the workflow *source*, *how* as ``put_workflow``."""
    from uwf_git.commands.workflow.build import put_workflow  # noqa: PLC0415 (YAML and schemas: 100 ms)

    return put_workflow(store, place.caller, source.text, path=source.path, **how)


def new_task_id(place: Place) -> ThreadId:
    """Make a ULID (https://github.com/ulid/spec); ids sort by time."""
    return build_thread_id(place.now_ms(), os.urandom(10))
