"""`uwf thread amend`: the rules of a running thread change, for the rest of it.

Owns: what may change at once. Always true: agents and limits change also while an agent is at
work, which works on; another workflow only between two steps. The limits of a thread stay its own
when it moves to another workflow. Source: seed 004 (runtime control); issue 5.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.commands.bind_roles import bind_typed
from uwf_git.commands.caller import Caller
from uwf_git.commands.change_rules import (
    Amended,
    Change,
    bind_new_roles,
    change_transition,
    steer_between_steps,
    tell_agents,
)
from uwf_git.commands.check_limits import check_asked
from uwf_git.commands.find_workflow import FoundWorkflow, find_workflow
from uwf_git.commands.steer import steer_thread
from uwf_git.errors import BadUsage, Refused
from uwf_git.model.builtin import BUILTIN_NODES
from uwf_git.model.limit import render_limit
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.record import Transition
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store
from uwf_git.store.trust import is_trusted, trust_agents


class NothingToAmend(BadUsage):
    """Nobody said what is to change."""

    code = "nothing-to-amend"

    def __init__(self) -> None:
        super().__init__(
            "there is nothing to change",
            hint="give --workflow, --agent or a limit such as --max-steps",
        )


class AlreadySo(Refused):
    """The thread goes by all of that already."""

    code = "already-so"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} has this workflow, these agents and limits already",
            hint=f"`uwf thread show {thread}` tells them",
            thread=thread,
        )


class AmendRequest(NamedTuple):
    """What is to change; what is not said stays."""

    thread: str
    workflow: str | None = None
    """A name or a hash."""

    agents: tuple[str, ...] = ()
    """``CMD`` for every role, or ``ROLE=CMD`` for one."""

    limits: Mapping[str, Any] = MappingProxyType({})
    """By the names that the StartNode has; None takes one away."""

    reason: str = ""
    default_agent: str | None = None
    """$UWF_AGENT: who plays a role that the other workflow brings and binds to nobody."""


def amend_thread(store: Store, caller: Caller, request: AmendRequest) -> Amended:
    """Change the workflow, the agents or the limits of a thread.

    Commands that are given here may run in this store from now on.

    Raises:
        NothingToAmend: nothing is to change.
        AlreadySo: nothing would.
        BadLimit, NoSuchRole, BadCommand: the request makes no sense.
        NoSuchWorkflow, WorkflowRemoved, AmbiguousNode, BadLocalWorkflow: there is no such workflow.
        PositionGone: it has not the role at which the thread stands, or waits.
        ThreadBusy, AgentLeftRunning: it is to be another workflow, and a step is under way.
        What ``steer_thread`` raises.
    """
    if request.workflow is None and not request.agents and not request.limits:
        raise NothingToAmend
    check_asked(request.limits)
    found = None
    if request.workflow is not None:
        found = find_workflow(store, request.workflow, cwd=caller.cwd)
    told: list[Amended] = []

    def plan(snapshot: Snapshot) -> Transition:
        transition, amended = _plan(store, caller, snapshot, request=request, found=found)
        told.append(amended)
        return transition

    steer = steer_thread if found is None else steer_between_steps
    steer(store, caller, request.thread, plan)
    # The last: an earlier one was of a head that moved before it was recorded.
    return told[-1]


def _plan(
    store: Store,
    caller: Caller,
    snapshot: Snapshot,
    *,
    request: AmendRequest,
    found: FoundWorkflow | None,
) -> tuple[Transition, Amended]:
    change = _rules_now(snapshot) if found is None else _moved(store, snapshot, request, found)
    typed = bind_typed(change.workflow, request.agents)
    said = [change.said] if change.said else []
    change = change._replace(
        said="; ".join([*said, *tell_agents(typed.agents), *_tell_limits(request.limits)]),
        agents={**change.agents, **typed.agents},
        trusted=[*change.trusted, *typed.typed],
        limits=request.limits,
        reason=request.reason,
    )
    transition, amended = change_transition(caller, snapshot, change)
    # Whoever gives the command of a fetched thread once more allows it here, which changes much.
    may_run = all(is_trusted(store, agent) for agent in change.trusted)
    if may_run and _is_as_before(snapshot, transition):
        raise AlreadySo(snapshot.record.thread)
    trust_agents(store, change.trusted)
    return transition, amended


def _is_as_before(snapshot: Snapshot, transition: Transition) -> bool:
    """Tell whether all stays as it is; a rule may be the same and still let a thread go on."""
    same_status = transition.record.status == snapshot.record.status
    return same_status and transition.present == snapshot.get_present()


def _rules_now(snapshot: Snapshot) -> Change:
    workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
    return Change("amend", workflow, said="")


def _moved(store: Store, snapshot: Snapshot, request: AmendRequest, found: FoundWorkflow) -> Change:
    workflow = found.workflow
    bound = bind_new_roles(store, snapshot, workflow, default=request.default_agent)
    return Change(
        "amend",
        workflow,
        said=f"goes on with {workflow.name} {workflow.hash}",
        agents=bound.agents,
        trusted=bound.typed,
        # The built-in schemas as well: an old thread may not have those that are new.
        nodes=(*found.closure, *BUILTIN_NODES),
    )


def _tell_limits(limits: Mapping[str, Any]) -> list[str]:
    return [f"{name} is {render_limit(name, value)}" for name, value in limits.items()]
