"""Changing the rules of a thread: another workflow, other agents, other limits.

Owns: the transition by which they change, and where a thread may not be moved.
Knows nothing of: where the new rules come from (thread_amend.py, thread_append.py).
Always true: what came before stays as it was recorded; a thread is never left at a role that its
workflow has not.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.bind_roles import Bound, bind_roles
from uwf_git.commands.caller import Caller
from uwf_git.commands.choose_agent import build_agent
from uwf_git.commands.left_running import check_nothing_runs
from uwf_git.commands.steer import (
    Plan,
    Signalled,
    Steered,
    record_planned,
    signal_transition,
)
from uwf_git.commands.take_over import take_over_tracked
from uwf_git.commands.thread_errors import read_active
from uwf_git.errors import Refused
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.signal import Action, build_signal, read_amendment
from uwf_git.model.thread import Amendment, Status
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.workflow import Workflow
from uwf_git.store.record import Transition
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import lock_thread

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class PositionGone(Refused):
    """The workflow to which a thread is to move has not the role that it stands at."""

    code = "position-gone"

    def __init__(self, thread: ThreadId, role: str, workflow: Workflow) -> None:
        super().__init__(
            f"thread {thread} stands at {role}, and workflow {workflow.name} {workflow.hash} has "
            "no such role",
            hint=f"its roles are {', '.join(workflow.roles)}; from a step of one of them "
            f"`uwf thread fork {thread} --at STEP` begins a thread that can move",
            thread=thread,
            role=role,
            workflow=workflow.hash,
        )


class Change(NamedTuple):
    """What becomes of the rules."""

    action: Action
    workflow: Workflow
    """The one in force afterwards, which may be that of before."""

    said: str
    agents: Mapping[str, Mapping[str, Any]] = _NOTHING
    """The AgentConfig payloads of the roles that get another agent, or their first one."""

    trusted: Sequence[dict[str, Any]] = ()
    """Those that somebody gave here, so that they may run here."""

    limits: Mapping[str, Any] = _NOTHING
    reason: str = ""
    nodes: tuple[Node, ...] = ()
    """The nodes of the new workflow that the thread may not have."""


class Amended(NamedTuple):
    """A thread after its rules changed."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    name: str
    """The workflow's."""

    agents: Mapping[str, str]
    """The commands of the roles that got another agent, or their first one."""

    limits: Mapping[str, Any]
    """All that are in force."""

    unbound: tuple[str, ...]
    """The roles for which nobody has said an agent yet."""


def change_transition(
    caller: Caller, snapshot: Snapshot, change: Change
) -> tuple[Transition, Amended]:
    """Build the transition of *change*, and what is told of it.

    Raises:
        PositionGone: the thread stands, or waits, at a role that the new workflow has not.
    """
    before, record = snapshot.get_present(), snapshot.record
    workflow, now = change.workflow, caller.now_ms()
    gone = before.find_gone_role(workflow.roles)
    if gone is not None and workflow.hash != before.workflow:
        raise PositionGone(record.thread, gone, workflow)
    agents = {
        role: build_agent(dict(agent), timestamp=now) for role, agent in change.agents.items()
    }
    amendment = Amendment(
        workflow=workflow.hash if workflow.hash != before.workflow else None,
        binding={role: agent.hash for role, agent in agents.items()},
        limits=change.limits,
    )
    signal = build_signal(change.action, timestamp=now, reason=change.reason, amendment=amendment)
    present = before.after_amend(read_amendment(signal.payload))
    status = present.status_amended(record.status)
    nodes = (*change.nodes, *agents.values())
    transition = signal_transition(
        snapshot, signal, Signalled("amend", status, change.said, present, nodes)
    )
    renamed = transition.record._replace(workflow_name=workflow.name)
    amended = Amended(
        workflow=workflow.hash,
        thread=record.thread,
        head=record.node,
        status=status,
        name=workflow.name,
        agents={role: agent.payload["command"] for role, agent in agents.items()},
        limits=present.limits,
        unbound=tuple(role for role in workflow.roles if role not in present.binding),
    )
    return transition._replace(record=renamed), amended


def bind_new_roles(
    store: Store, snapshot: Snapshot, workflow: Workflow, *, default: str | None
) -> Bound:
    """Give the agents, as at a start, of those roles of *workflow* that have none in the thread.

    Raises:
        BadCommand: the configured command cannot be split into words.
    """
    known = snapshot.get_present().binding
    bound = bind_roles(store, workflow, default=default)
    agents = {role: agent for role, agent in bound.agents.items() if role not in known}
    return Bound(agents, [agent for agent in bound.typed if agent in agents.values()])


def steer_between_steps(store: Store, caller: Caller, text: str, plan: Plan) -> Steered:
    """Record what *plan* gives after where the thread is that *text* means, if nothing runs.

    Under another workflow a step that is under way could mean something else.

    Raises:
        ThreadBusy, AgentLeftRunning: a step is under way.
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: there is none.
        EndedElsewhere: it has ended at a remote, without what is here.
        HeadMoved: it moves faster than it can be steered.
        What *plan* raises.
    """
    thread = read_active(store, text)[0].thread
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        take_over_tracked(store, thread)

        def plan_at_rest(snapshot: Snapshot) -> Transition:
            check_nothing_runs(store, snapshot)
            return plan(snapshot)

        # A pause or a patch needs no lock, and may come between.
        return record_planned(store, caller, thread, plan_at_rest)


def tell_agents(agents: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say who plays what from now on, in words."""
    return [f"{role} is played by {agent_name(each['command'])}" for role, each in agents.items()]
