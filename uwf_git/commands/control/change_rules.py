"""Change the rules of a thread: its workflow, agents or limits.

Recorded steps stay as they are. A thread never stands at a role that its workflow lacks.
The new rules come from amend.py or append.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.commands.agent_run.check_idle import check_nothing_runs
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.steer import BuildCommit, build_signalled, record_built
from uwf_git.commands.remote.fast_forward import fast_forward_from_tracking
from uwf_git.commands.split.plan import read_entry, read_flow
from uwf_git.commands.turn.active_thread import WrongStatus, read_active
from uwf_git.commands.turn.agent_words import settings_by_role
from uwf_git.commands.turn.bind_roles import Bound, bind_roles
from uwf_git.commands.turn.choose_agent import build_agent
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.engine.flow_move import find_lost_entry, find_lost_place, find_renamed_place
from uwf_git.errors import Refused
from uwf_git.model.event_folds import Cause
from uwf_git.model.flow import Flow
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.problem import Problem
from uwf_git.model.thread import Action, Amendment, Status, ThreadState, build_signal
from uwf_git.model.workflow import Workflow, parse_flow_node, parse_role, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_role
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.threads.lock import lock_thread
from uwf_git.store.threads.record import NewCommit, read_standing
from uwf_git.store.threads.snapshot import Snapshot

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def position_gone(thread: ThreadId, role: str, workflow: Workflow) -> Refused:
    """Say that the new workflow lacks the role at which the thread stands."""
    return Refused(
        f"thread {thread} stands at {role}, and workflow {workflow.name} {workflow.hash} has "
        "no such role",
        code="position-gone",
        hint=f"its roles are {', '.join(workflow.roles)}; from a step of one of them "
        f"`uwf thread fork {thread} --at STEP` begins a thread that can move",
        thread=thread,
        role=role,
        workflow=workflow.hash,
    )


class PlaceGone(Refused):
    """The new workflow has another container or agent where the thread stands."""

    code = "place-gone"

    def __init__(self, thread: ThreadId, at: str, workflow: Workflow) -> None:
        super().__init__(
            f"thread {thread} stands at {at}, and workflow {workflow.name} {workflow.hash} has "
            "something else on the way there",
            hint=f"conditions, bounds and what comes later may change; `uwf thread fork {thread} "
            "--at STEP` begins a thread that can move",
            thread=thread,
            position=at,
            workflow=workflow.hash,
        )


_OF_BRANCH = "`uwf thread show {thread}` names its parent; change that one when it has joined"
_OF_SPLIT = (
    "`uwf thread run {thread}` joins them; `uwf thread fork {thread}` begins a thread before the "
    "split, which can change"
)


class RuleChange(NamedTuple):
    """A change of a thread's rules, with the nodes that it needs."""

    action: Action
    workflow: Workflow
    """The workflow in force afterwards; it may be the same as before."""

    played: Workflow
    """The same with all roles that need agents, as ``read_played`` returns it."""

    agents: Mapping[str, Mapping[str, Any]] = _NOTHING
    """The AgentConfig payloads of the roles that get an agent."""

    trusted: Sequence[dict[str, Any]] = ()
    """The agents that were given here, so that they may run here."""

    limits: Mapping[str, Any] = _NOTHING
    reason: str = ""
    nodes: tuple[Node, ...] = ()
    """The nodes of the new workflow; the thread may have them already."""


class Amended(NamedTuple):
    """A thread after its rules changed."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    name: str
    """The name of the workflow."""

    agents: Mapping[str, str]
    """The commands of the roles that got an agent."""

    limits: Mapping[str, Any]
    """All limits in force."""

    unbound: tuple[str, ...]
    """The roles that have no agent yet, those of workflows inside included."""

    settings: Mapping[str, Mapping[str, Any]] = _NOTHING
    """What the agents of these roles have besides their command, where there is any."""

    left: tuple[str, ...] = ()
    """The roles that a command for every role left as the file binds them."""

    warnings: tuple[Problem, ...] = ()
    """What in an added file may be a mistake."""


def build_rule_change(
    caller: Caller, snapshot: Snapshot, change: RuleChange
) -> tuple[NewCommit, Amended]:
    """Build the commit of *change*, and the result that the command shows.

    Raises:
        Refused: the new workflow lacks the role at which the thread stands or waits.
    """
    before, workflow = read_standing(snapshot), change.workflow
    old, now = before.state, caller.now_ms()
    if workflow.hash != old.workflow:
        _check_position(snapshot, change)
    agents = {
        role: build_agent(dict(agent), timestamp=now) for role, agent in change.agents.items()
    }
    amendment = Amendment(
        workflow=workflow.hash if workflow.hash != old.workflow else None,
        binding={role: agent.hash for role, agent in agents.items()},
        limits=change.limits,
    )
    new = build_signalled(
        before,
        Cause(workflow_name=workflow.name),
        signal=build_signal(
            change.action, timestamp=now, reason=change.reason, amendment=amendment
        ),
        nodes=(*change.nodes, *agents.values()),
    )
    amended = Amended(
        workflow=workflow.hash,
        thread=new.record.thread,
        head=new.record.node,
        status=new.record.status,
        name=workflow.name,
        agents={role: agent.payload["command"] for role, agent in agents.items()},
        limits=new.present.limits,
        unbound=tuple(_list_unbound(change.played, new.present.binding)),
        settings=settings_by_role({role: agent.payload for role, agent in agents.items()}),
    )
    return new, amended


def _check_position(snapshot: Snapshot, change: RuleChange) -> None:
    """Check that the thread can go on from where it stands in another workflow."""
    thread, present = snapshot.record.thread, snapshot.get_present()
    if snapshot.get_trunk() is not None:
        raise WrongStatus(snapshot, "is a branch, and runs what its split said", _OF_BRANCH)
    if present.split is not None and change.action != "append":
        raise WrongStatus(snapshot, "has split, and its branches run its workflow", _OF_SPLIT)
    before = parse_workflow(snapshot.get_node(present.workflow))
    old = read_flow(snapshot, before)
    made = {node.hash: node for node in change.nodes}
    if present.split is not None and old is None:
        role = present.split.at
        added = made.get(change.workflow.roles[role])
        asked = None if added is None else parse_role(added).workflow
        if added is not None and asked != get_role(snapshot, before.roles[role]).workflow:
            raise WrongStatus(snapshot, f"has split for {role}, which a workflow plays", _OF_SPLIT)
    target = change.workflow.flow
    node = None if target is None else made.get(target) or snapshot.get_node(target)
    new = None if node is None else parse_flow_node(node)
    roles = change.workflow.roles
    gone = None
    if old is None and new is None:
        gone = present.find_gone_role(roles)
    elif old is None:
        gone = present.find_gone_role(())
    else:
        lost = None if old is None else find_lost_entry(old, new, read_entry(snapshot))
        if lost is not None:
            raise PlaceGone(thread, lost, change.workflow)
        check_place(thread, (old, new), present, change.workflow)
        waiting = None if present.waiting is None else present.waiting.role
        gone = waiting if waiting is not None and waiting not in roles else None
    if gone is not None:
        raise position_gone(thread, gone, change.workflow)


def check_place(
    thread: ThreadId, flows: tuple[Flow | None, Flow | None], present: ThreadState, to: Workflow
) -> None:
    """Check that *thread*, at *present* in the first of *flows*, can go on in the second.

    That one is of the workflow *to*.

    Raises:
        PlaceGone: something else is on the way there.
    """
    old, new = flows
    lost = find_lost_place(old, new, present)
    if lost is None and old is not None and new is not None:
        lost = find_renamed_place(old, new, present)
    if lost is not None:
        raise PlaceGone(thread, lost, to)


def _list_unbound(played: Workflow, binding: Mapping[str, NodeHash]) -> Iterator[str]:
    """Yield the roles that have no agent, neither in the thread nor in a workflow inside."""
    for role in played.roles:
        if role not in binding and role not in played.agent_overrides:
            yield role


class NewAgents(NamedTuple):
    """Who plays the roles that a thread binds to none."""

    default: str | None
    by_role: Mapping[str, str]
    """Commands that come before what the workflow says; roles that it lacks do not count."""


def bind_new_roles(
    store: Store, snapshot: Snapshot, workflow: Workflow, played: Workflow, *, given: NewAgents
) -> Bound:
    """Return the agents, as at a start, of the roles of *played* that the thread binds to none.

    *played* is *workflow* with the roles of workflows in it; these keep agents of their own.

    Raises:
        BadCommand: the configured command cannot be split into words.
    """
    known = snapshot.get_present().binding
    bound = bind_roles(
        store,
        played,
        typed=[f"{role}={cmd}" for role, cmd in given.by_role.items() if role in played.roles],
        default=given.default,
        directory=find_workdir(store, snapshot.record.thread),
    )
    agents = {
        role: agent
        for role, agent in bound.agents.items()
        if role not in known
        and (role in workflow.roles or agent != played.agent_overrides.get(role))
    }
    return Bound(agents, [agent for agent in bound.typed if agent in agents.values()])


def steer_between_steps(
    store: Store, caller: Caller, text: str, build: BuildCommit
) -> ThreadResult:
    """Record what *build* returns on top of a thread, unless a step is under way.

    A step that began under one workflow must not be recorded under another.

    Raises:
        ThreadBusy, AgentLeftRunning: a step is under way.
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: no active thread matches.
        EndedElsewhere: the thread has ended at a remote, without the commits made here.
        HeadMoved: other processes moved the head at every try.
        What *build* raises.
    """
    thread = read_active(store, text)[0].thread
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        fast_forward_from_tracking(store, thread)

        def build_at_rest(snapshot: Snapshot) -> NewCommit:
            check_nothing_runs(store, snapshot)
            return build(snapshot)

        # A pause or a patch takes no lock and may come in between.
        return record_built(store, caller, thread, build_at_rest)
