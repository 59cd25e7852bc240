"""`uwf thread append`: a running thread gets more roles and transitions, and no other one does.

Owns: from whose workflow the file goes on. Knows nothing of: how the two go together
(model/definition_append.py). Always true: the workflow that comes of it is as right as one that
was put, and lives in the thread alone: the registry keeps its versions. Source: seed 004, append.
"""

from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.change_rules import (
    Amended,
    Change,
    bind_new_roles,
    change_transition,
    steer_between_steps,
    tell_agents,
)
from uwf_git.commands.workflow_build import read_appended
from uwf_git.commands.workflow_files import includes_beside
from uwf_git.errors import Refused
from uwf_git.model.builtin import BUILTIN_NODES
from uwf_git.model.definition_append import Addition, append_addition
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.workflow import parse_graph, parse_workflow
from uwf_git.store.record import Transition
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store
from uwf_git.store.trust import trust_agents


class NothingToAppend(Refused):
    """The thread has all of it."""

    code = "nothing-to-append"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} has all that the file adds already",
            hint=f"`uwf thread show {thread}` names its workflow, and `uwf workflow show` shows it",
            thread=thread,
        )


class AppendRequest(NamedTuple):
    """What is to be added."""

    thread: str
    source: bytes
    """YAML with ``roles``, ``moderator`` and ``agentOverrides``."""

    path: str | None = None
    """Where the file lies, for what it includes; without one it can include nothing."""

    reason: str = ""
    default_agent: str | None = None
    """$UWF_AGENT: who plays a new role that the file binds to nobody."""


def append_to_thread(store: Store, caller: Caller, request: AppendRequest) -> Amended:
    """Add roles and transitions to the workflow of a thread, for this thread alone.

    The agents that the file names may run in this store from now on: somebody who is here gave
    it. They play the roles that it names, and other roles keep theirs.

    Raises:
        BadYaml: the file is not YAML.
        BadIncludes: files cannot be included.
        InvalidWorkflow: it has problems, or what comes of it; all of them are told.
        NothingToAppend: the thread has all of it.
        What ``steer_between_steps`` raises.
    """
    told: list[Amended] = []

    def plan(snapshot: Snapshot) -> Transition:
        transition, amended = _plan(store, caller, snapshot, request=request)
        told.append(amended)
        return transition

    steer_between_steps(store, caller, request.thread, plan)
    return told[-1]


def _plan(
    store: Store, caller: Caller, snapshot: Snapshot, *, request: AppendRequest
) -> tuple[Transition, Amended]:
    node = snapshot.get_node(snapshot.record.workflow)
    before = parse_workflow(node)
    graph = parse_graph(snapshot.get_node(before.moderator))
    addition = read_appended(
        request.source, includes_beside(request.path), to=(tuple(before.roles), graph)
    )
    made, nodes = append_addition(node, addition, timestamp=caller.now_ms())
    written = {role: agent.as_payload() for role, agent in addition.agent_overrides.items()}
    if made.hash == node.hash:
        raise NothingToAppend(snapshot.record.thread)
    workflow = parse_workflow(made)
    bound = bind_new_roles(store, snapshot, workflow, default=request.default_agent)
    change = Change(
        "append",
        workflow,
        said=_tell(addition),
        agents={**bound.agents, **written},
        trusted=[*bound.typed, *written.values()],
        reason=request.reason,
        nodes=(made, *nodes, *BUILTIN_NODES),
    )
    transition, amended = change_transition(caller, snapshot, change)
    trust_agents(store, change.trusted)
    return transition, amended


def _tell(addition: Addition) -> str:
    parts = [f"adds {', '.join(addition.roles)}"] if addition.roles else []
    if addition.sources:
        parts.append(f"new ways from {', '.join(addition.sources)}")
    written = {role: agent.as_payload() for role, agent in addition.agent_overrides.items()}
    return "; ".join([*parts, *tell_agents(written)])
