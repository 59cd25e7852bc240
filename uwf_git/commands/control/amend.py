"""`uwf thread amend`: change the workflow, agents or limits of a running thread.

Agents and limits can change while an agent works; the workflow only between two steps. A thread
keeps its own limits when it moves to another workflow. Source: seed 004 (runtime control); issue 5.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.control.change_rules import (
    Amended,
    NewAgents,
    RuleChange,
    bind_new_roles,
    build_rule_change,
    steer_between_steps,
)
from uwf_git.commands.control.steer import steer_thread
from uwf_git.commands.turn.active_thread import WrongStatus
from uwf_git.commands.turn.bind_roles import Bound, bind_typed, find_played
from uwf_git.commands.turn.inner_roles import read_played
from uwf_git.commands.turn.limits import check_asked
from uwf_git.commands.workflow.find import FoundWorkflow, find_workflow
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.threads.record import NewCommit
from uwf_git.store.threads.snapshot import Snapshot, get_typed
from uwf_git.store.trust import is_trusted, trust_agents

_OF_PARENT = "`uwf thread show {thread}` names its parent: amend that one"


def _already_so(thread: ThreadId, left: tuple[str, ...] = ()) -> Refused:
    hint = f"`uwf thread show {thread}` tells them"
    if left:
        hint = f"a command for every role leaves {', '.join(left)}, as the workflow binds it; "
        hint += f"`--agent {left[0]}=CMD` replaces it"
    return Refused(
        f"thread {thread} has this workflow, these agents and limits already",
        code="already-so",
        hint=hint,
        thread=thread,
    )


class AmendRequest(NamedTuple):
    """The rules to change; what is not given stays."""

    thread: str
    workflow: str | None = None
    """A name or a hash."""

    agents: tuple[str, ...] = ()
    """``CMD`` or settings for every role, or ``ROLE=…`` for one; the rest of an agent stays.

    The roles of workflows inside count too.

    A command for every role leaves those that the file binds to a person, or to a check.
    """

    limits: Mapping[str, Any] = MappingProxyType({})
    """By their names in the StartNode; None removes one."""

    reason: str = ""
    default_agent: str | None = None
    """$UWF_AGENT: the agent of a new role that the workflow binds to none."""

    new_agents: Mapping[str, str] = MappingProxyType({})
    """Commands by role, of new roles, and of others, which are left out."""


def amend_thread(store: Store, caller: Caller, request: AmendRequest) -> Amended:
    """Change the workflow, the agents or the limits of a thread.

    Commands that are given here may run in this store from now on.

    Raises:
        BadUsage: the request is empty.
        Refused: the thread has these rules already.
        Refused, BadCommand: the request is wrong.
        Refused, WorkflowRemoved, AmbiguousNode, BadLocalWorkflow: no workflow matches.
        Refused: the new workflow lacks the role at which the thread stands or waits.
        ThreadBusy, AgentLeftRunning: the workflow changes and a step is under way.
        What ``steer_thread`` raises.
    """
    if request.workflow is None and not request.agents and not request.limits:
        raise BadUsage(
            "there is nothing to change",
            code="nothing-to-amend",
            hint="give --workflow, --agent or a limit such as --max-steps",
        )
    check_asked(request.limits)
    found = None
    if request.workflow is not None:
        found = find_workflow(store, request.workflow, cwd=caller.cwd)
    results: list[Amended] = []

    def build(snapshot: Snapshot) -> NewCommit:
        new, amended = _build(store, caller, snapshot, request=request, found=found)
        results.append(amended)
        return new

    steer = steer_thread if found is None else steer_between_steps
    steer(store, caller, request.thread, build)
    # Only the last was recorded; before it the head had moved.
    return results[-1]


def _build(
    store: Store,
    caller: Caller,
    snapshot: Snapshot,
    *,
    request: AmendRequest,
    found: FoundWorkflow | None,
) -> tuple[NewCommit, Amended]:
    if request.limits and snapshot.get_trunk() is not None:
        raise WrongStatus(snapshot, "is a branch, and has the limits of its parent", _OF_PARENT)
    change = _rules_now(snapshot) if found is None else _moved(store, snapshot, request, found)
    workdir = find_workdir(store, snapshot.record.thread) or caller.cwd

    def may_run(agent: dict[str, Any]) -> bool:
        return agent in change.trusted or is_trusted(store, agent, workdir)

    typed = _bind_typed(snapshot, request, change, may_run=may_run)
    change = change._replace(
        agents={**change.agents, **typed.agents},
        trusted=[*change.trusted, *typed.typed],
        limits=request.limits,
        reason=request.reason,
    )
    new, amended = build_rule_change(caller, snapshot, change)
    amended = amended._replace(left=typed.left)
    # To give the command of a fetched thread again is to trust it here: that is a change.
    are_trusted = all(is_trusted(store, agent, workdir) for agent in change.trusted)
    if are_trusted and _changes_nothing(snapshot, new):
        raise _already_so(snapshot.record.thread, typed.left)
    trust_agents(store, change.trusted, workdir)
    return new, amended


def _bind_typed(
    snapshot: Snapshot,
    request: AmendRequest,
    change: RuleChange,
    *,
    may_run: Callable[[dict[str, Any]], bool],
) -> Bound:
    """Return the agents that were typed; they keep the settings that were not named."""
    binding = snapshot.get_present().binding

    def find_base(role: str) -> dict[str, Any] | None:
        if role in change.agents:
            return dict(change.agents[role])
        if role not in binding:
            own = role in change.workflow.roles
            return None if own else change.played.agent_overrides.get(role)
        payload: dict[str, Any] = get_typed(snapshot, binding[role], AGENT_CONFIG).payload
        return payload

    return bind_typed(
        change.played,
        request.agents,
        find_base=find_base,
        may_run=may_run,
        keeps=True,
    )


def _changes_nothing(snapshot: Snapshot, new: NewCommit) -> bool:
    """Check whether status and state stay; the same agent again can end a wait."""
    same_status = new.record.status == snapshot.record.status
    return same_status and new.present == snapshot.get_present()


def _rules_now(snapshot: Snapshot) -> RuleChange:
    workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
    return RuleChange("amend", workflow, read_played(snapshot, workflow))


def _moved(
    store: Store, snapshot: Snapshot, request: AmendRequest, found: FoundWorkflow
) -> RuleChange:
    workflow = found.workflow
    played = find_played(workflow, found.closure)
    bound = bind_new_roles(
        store,
        snapshot,
        workflow,
        played,
        given=NewAgents(request.default_agent, request.new_agents),
    )
    return RuleChange(
        "amend",
        workflow,
        played,
        agents=bound.agents,
        trusted=bound.typed,
        nodes=tuple(found.closure),
    )
