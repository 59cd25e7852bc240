"""`uwf thread append`: add roles and transitions to the workflow of one running thread.

The new Workflow node is checked as in a put, and lives in the thread alone. How the two are joined:
model/definition/source.py. Source: seed 004, append.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.control.change_rules import (
    Amended,
    RuleChange,
    bind_new_roles,
    build_rule_change,
    steer_between_steps,
)
from uwf_git.commands.split import read_entry, read_flow
from uwf_git.commands.turn.choose_agent import find_missing_programs, read_played
from uwf_git.commands.workflow.build import outside_of, read_appended, read_appended_nodes
from uwf_git.commands.workflow.find import find_used, includes_beside
from uwf_git.engine.flow_move import has_left
from uwf_git.errors import Refused
from uwf_git.model.builtin import walk_closure
from uwf_git.model.definition.definition import UsedWorkflow
from uwf_git.model.definition.roles import RolesFile
from uwf_git.model.definition.source import (
    Addition,
    Target,
    append_addition,
    find_target,
    no_such_container,
)
from uwf_git.model.node import Node
from uwf_git.model.workflow import Workflow, describe_check, parse_graph, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.history import NewCommit, Snapshot, get_role
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.trust import trust_agents


class AppendRequest(NamedTuple):
    thread: str
    source: bytes
    """YAML: ``roles``, ``moderator``, ``agentOverrides``; for a flow ``nodes`` or a list."""

    path: str | None = None
    """Where the file lies, to find its includes; None: it can include nothing."""

    reason: str = ""
    to: str | None = None
    """Of a flow: the id or name of a container, at whose end the nodes go; None: after the root."""

    default_agent: str | None = None
    """$UWF_AGENT: the agent of a new role that the file binds to no agent."""

    new_agents: Mapping[str, str] = MappingProxyType({})
    """Commands by role; roles that are not new are left out."""


def append_to_thread(store: Store, caller: Caller, request: AppendRequest) -> Amended:
    """Add roles and transitions, or nodes, to the workflow of a thread, for this thread alone.

    The agents that the file names may run in this store from now on, since the file was given here.
    They play the roles that it names; other roles keep their agents.
    """
    results: list[Amended] = []

    def build(snapshot: Snapshot) -> NewCommit:
        new, amended = _build(store, caller, snapshot, request=request)
        results.append(amended)
        return new

    steer_between_steps(store, caller, request.thread, build)
    return results[-1]


def _build(
    store: Store, caller: Caller, snapshot: Snapshot, *, request: AppendRequest
) -> tuple[NewCommit, Amended]:
    node = snapshot.get_node(snapshot.record.workflow)
    made, nodes, addition = _read(store, caller, snapshot, parse_workflow(node), request)
    written = {role: agent.as_payload() for role, agent in addition.agent_overrides.items()}
    roles = addition.roles.values()
    checks = [describe_check(command) for role in roles for command in role.checks]
    if made.hash == node.hash:
        raise Refused(
            f"thread {snapshot.record.thread} has all that the file adds already",
            code="nothing-to-append",
            hint=f"`uwf thread show {snapshot.record.thread}` names its workflow, and `uwf "
            "workflow show` shows it",
            thread=snapshot.record.thread,
        )
    workflow = parse_workflow(made)
    played = read_played(snapshot, workflow, [made, *nodes])
    given = request.default_agent, request.new_agents
    bound = bind_new_roles(store, snapshot, workflow, played, given)
    change = RuleChange(
        "append",
        workflow,
        played,
        agents={**bound.agents, **written},
        trusted=[*bound.typed, *written.values(), *checks],
        reason=request.reason,
        nodes=(made, *nodes),
    )
    new, amended = build_rule_change(caller, snapshot, change)
    workdir = find_workdir(store, snapshot.record.thread) or caller.cwd
    trust_agents(store, change.trusted, workdir)
    missing = find_missing_programs(written, caller.environ, workdir, store.config)
    return new, amended._replace(warnings=addition.warnings, missing=missing)


def _read(
    store: Store, caller: Caller, snapshot: Snapshot, before: Workflow, request: AppendRequest
) -> tuple[Node, list[Node], Addition]:
    node, now = snapshot.get_node(before.hash), caller.now_ms()
    includes = includes_beside(request.path)
    flow = read_flow(snapshot, before)
    if flow is None:
        if request.to is not None:
            raise no_such_container(request.to, "is no container: the workflow is a graph", ())
        graph = parse_graph(snapshot.get_node(before.get_moderator()))
        file = RolesFile(before.name, find_used(store, caller.cwd))
        to = (tuple(before.roles), graph)
        addition = read_appended(request.source, includes, to=to, file=file)
        return (*append_addition(node, addition, timestamp=now), addition)
    files = {role: get_role(snapshot, name).output_file for role, name in before.roles.items()}
    target = find_target(Target(before.name, files, flow), request.to)
    present, entry = snapshot.get_present(), read_entry(snapshot)
    # A branch is refused as such, below.
    if snapshot.get_trunk() is None and has_left(flow, target.container, present, entry):
        where = "the root" if request.to is None else repr(request.to[:60])
        raise Refused(
            f"thread {snapshot.record.thread} has left {where}, or has split there: nodes at its "
            "end would never run",
            code="container-left",
            hint="without --to they run after the root; "
            f"`uwf thread fork {snapshot.record.thread} --at STEP` begins a thread before it"
            if request.to is not None
            else "it was forked from a branch, and ends where that does: --to names a container "
            "in it",
            thread=snapshot.record.thread,
            named=None if request.to is None else request.to[:60],
        )
    inner = {node.workflow for node in flow.nodes.values() if node.workflow is not None}
    used = [UsedWorkflow(each, [*walk_closure([each], snapshot.get_node)]) for each in inner]
    outside = outside_of(request.path, find_used(store, caller.cwd))._replace(used=used)
    added = read_appended_nodes(request.source, includes, to=target, outside=outside)
    return (*append_addition(node, added, timestamp=now), added)
