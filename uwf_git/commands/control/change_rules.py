"""`uwf thread amend`: change the rules of a thread: its workflow, agents or limits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.commands.agent_run.runs import check_nothing_runs
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.answer import (
    RESUME,
    BuildCommit,
    build_signalled,
    record_built,
    steer_thread,
)
from uwf_git.commands.family import check_ancestors
from uwf_git.commands.split import read_entry, read_flow
from uwf_git.commands.step.ending import fast_forward_from_tracking
from uwf_git.commands.step.step_thread import choose_players
from uwf_git.commands.turn.branches import WrongStatus, choose_place, read_active
from uwf_git.commands.turn.choose_agent import (
    Bound,
    Choice,
    MissingProgram,
    bind_roles,
    bind_typed,
    build_agent,
    check_next,
    find_missing_programs,
    find_played,
    is_person,
    read_played,
)
from uwf_git.commands.turn.flow import (
    check_asked,
    check_limits,
    read_keep_rules,
    read_retry,
    read_spending,
)
from uwf_git.commands.turn.next_move import PERSON, decide_next, settings_by_role
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.commands.workflow.find import FoundWorkflow, find_workflow
from uwf_git.engine.flow_move import find_lost_place, find_renamed_place
from uwf_git.errors import BadUsage, Problem, Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.event_folds import Cause
from uwf_git.model.event_rules import STEPS
from uwf_git.model.flow import Flow, Position
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.thread import NOTHING, Action, Amendment, Status, ThreadState, build_signal
from uwf_git.model.workflow import END, START, Workflow, parse_flow_node, parse_role, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    get_role,
    get_typed,
    get_workflow,
    read_snapshot,
    read_standing,
    walk_history,
)
from uwf_git.store.threads.local_files import ThreadBusy, find_driver, find_workdir, lock_thread
from uwf_git.store.trust import is_trusted, trust_agents

# Change the rules of a thread: its workflow, agents or limits.
#
# Recorded steps stay as they are. A thread never stands at a role that its workflow lacks. The
# new rules come from amend_thread or append.py.


def position_gone(thread: ThreadId, role: str, workflow: Workflow) -> Refused:
    """Return the error for a workflow without the role at which the thread is to stand."""
    return Refused(
        f"thread {thread} cannot stand at {role}: workflow {workflow.name} {workflow.hash} has "
        "no such role",
        code="position-gone",
        hint=f"its roles are {', '.join(workflow.roles)}; from a step of one of them "
        f"`uwf thread fork {thread} --at STEP` begins a thread that can move",
        thread=thread,
        role=role,
        workflow=workflow.hash,
    )


_OF_BRANCH = (
    "`uwf thread show {thread}` names its parent; change the outermost when it has joined, or a "
    "fork of it: `uwf thread fork OUTERMOST`"
)
_OF_SPLIT = (
    "`uwf thread run {thread}` joins them; `uwf thread fork {thread}` begins a thread before the "
    "split, which can change"
)
_NO_CONTAINERS = (
    "a table changes to containers only before the first step, while it waits for nobody"
)
_FROM_START = "`uwf thread fork {thread} --at 0` begins a thread that can change"
_AFTER_WAIT = (
    "let it be answered (`uwf thread answer {thread}`) first; or `uwf thread fork {thread}` begins "
    "a thread that does not wait yet, which can change"
)


class RuleChange(NamedTuple):
    action: Action
    workflow: Workflow
    """The workflow in force afterwards; it may be the same as before."""

    played: Workflow
    """The same with all roles that need agents, as ``read_played`` returns it."""

    agents: Mapping[str, Mapping[str, Any]] = NOTHING
    """The AgentConfig payloads of the roles that get an agent."""

    trusted: Sequence[dict[str, Any]] = ()

    limits: Mapping[str, Any] = NOTHING
    reason: str = ""
    nodes: tuple[Node, ...] = ()
    """The nodes of the new workflow; the thread may have them already."""


class Amended(NamedTuple):
    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    name: str

    agents: Mapping[str, str]

    limits: Mapping[str, Any]

    unbound: tuple[str, ...]
    """The roles without an agent, also of workflows inside."""

    settings: Mapping[str, Mapping[str, Any]] = NOTHING
    """What the agents of these roles have besides their command."""

    left: tuple[str, ...] = ()
    """The roles that a command for every role left to people and checks."""

    warnings: tuple[Problem, ...] = ()

    missing: Sequence[MissingProgram] = ()
    """The programs of the agents that were given that are not found here."""


def build_rule_change(
    caller: Caller, snapshot: Snapshot, change: RuleChange
) -> tuple[NewCommit, Amended]:
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
    signal = build_signal(change.action, timestamp=now, reason=change.reason, amendment=amendment)
    new = build_signalled(
        snapshot,
        Cause(workflow_name=workflow.name),
        signal=signal,
        nodes=(*change.nodes, *agents.values()),
    )
    bound = {*new.present.binding, *change.played.agent_overrides}
    amended = Amended(
        workflow=workflow.hash,
        thread=new.record.thread,
        head=new.record.node,
        status=new.record.status,
        name=workflow.name,
        agents={role: agent.payload["command"] for role, agent in agents.items()},
        limits=new.present.limits,
        unbound=tuple(role for role in change.played.roles if role not in bound),
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
    roles, waiting = change.workflow.roles, present.waiting
    if old is not None:
        check_place(thread, (old, new), present, change.workflow, entry=read_entry(snapshot))
        # There it stands at a place.
        present = present._replace(role=START)
    elif new is not None and (waiting is not None or present.depth):
        stands = f"stands at {present.role}" if waiting is None else f"waits for {waiting.role}"
        raise WrongStatus(snapshot, f"{stands}, and {_NO_CONTAINERS}", _FROM_START)
    if (gone := present.find_gone_role(roles)) is not None:
        raise position_gone(thread, gone, change.workflow)
    if waiting is not None:
        name = roles[waiting.role]
        if parse_role(made.get(name) or snapshot.get_node(name)).workflow is not None:
            problem = f"waits for {waiting.role}, which a workflow would play"
            raise WrongStatus(snapshot, problem, _AFTER_WAIT if waiting.until is None else RESUME)


def check_place(
    thread: ThreadId,
    flows: tuple[Flow | None, Flow | None],
    present: ThreadState,
    to: Workflow,
    *,
    entry: Position | None = None,
) -> None:
    """Check that *thread*, at *present* in the first of *flows*, can go on in the second, of *to*.

    *entry* is where the thread began, if it was a branch.
    """
    old, new = flows
    lost = find_lost_place(old, new, present, entry)
    if lost is None and old is not None and new is not None:
        lost = find_renamed_place(old, new, present)
    if lost is not None:
        raise Refused(
            f"thread {thread} cannot stand at {lost}: workflow {to.name} {to.hash} has "
            "something else on the way there",
            code="place-gone",
            hint=f"conditions, bounds and what comes later may change; `uwf thread fork {thread} "
            "--at STEP` begins a thread that can move",
            thread=thread,
            position=lost,
            workflow=to.hash,
        )


def bind_new_roles(
    store: Store,
    snapshot: Snapshot,
    workflow: Workflow,
    played: Workflow,
    given: tuple[str | None, Mapping[str, str]],
) -> Bound:
    """Return the agents, as at a start, of the roles of *played* that the thread binds to no agent.

    *played* is *workflow* with the roles of workflows in it, which keep agents of their own.
    *given* is the agent of roles that the workflow binds to no agent, and commands by role, which
    come before what the workflow says.
    """
    default, commands = given
    known = snapshot.get_present().binding
    bound = bind_roles(
        store,
        played,
        typed=[f"{role}={cmd}" for role, cmd in commands.items() if role in played.roles],
        default=default,
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
    """Record what *build* returns, unless a step of the old workflow is under way."""
    thread = read_active(store, text)[0].thread
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        fast_forward_from_tracking(store, thread)

        def build_at_rest(snapshot: Snapshot) -> NewCommit:
            check_nothing_runs(store, snapshot)
            return build(snapshot)

        # A pause or a patch takes no lock and may come in between.
        return record_built(store, caller, thread, build_at_rest)


# `uwf thread amend`: change the workflow, agents or limits of a running thread.
#
# Agents and limits can change while an agent works; the workflow only between two steps. A thread
# keeps its own limits when it moves to another workflow. Source: seed 004 (runtime control);
# issue 5.

_OF_PARENT = "`uwf thread show {thread}` names its parent: amend that one"


class AmendRequest(NamedTuple):
    """The rules to change; what is not given stays."""

    thread: str
    workflow: str | None = None

    agents: tuple[str, ...] = ()
    """``CMD`` or settings for every role, or ``ROLE=…`` for one role; the rest of an agent stays.

    The roles of workflows inside count too. A command for every role leaves roles that are bound
    to a person or to a check.
    """

    limits: Mapping[str, Any] = NOTHING
    """By their names in the StartNode; None removes a limit."""

    reason: str = ""
    default_agent: str | None = None
    """$UWF_AGENT: the agent of a new role that the workflow binds to no agent."""

    new_agents: Mapping[str, str] = NOTHING
    """Commands by role; roles that are not new are left out."""


def amend_thread(
    store: Store,
    caller: Caller,
    request: AmendRequest,
    *,
    put: Callable[..., object] | None = None,
) -> Amended:
    """Change workflow, agents or limits of a thread; trust the commands that are given.

    *put* registers the workflow of a file, unless *accept*, which it calls with it, refuses it.
    """
    if not (request.workflow or put or request.agents or request.limits):
        raise BadUsage(
            "there is nothing to change",
            code="nothing-to-amend",
            hint="give a workflow, an agent or a limit (on the command line: --workflow, "
            "--agent, or one such as --max-steps)",
        )
    check_asked(request.limits)
    found = None
    if request.workflow is not None:
        found = find_workflow(store, request.workflow, cwd=caller.cwd)
    results: list[tuple[NewCommit, Amended]] = []

    def build(snapshot: Snapshot) -> NewCommit:
        def use(given: FoundWorkflow | None) -> None:
            nonlocal found
            found = given
            results.append(_build(store, caller, snapshot, request=request, found=given))

        if found is None and put is not None:
            put(accept=use)
        else:
            use(found)
        return results[-1][0]

    steer = steer_thread if found is None and put is None else steer_between_steps
    steer(store, caller, request.thread, build)
    # Only the last was recorded; before it the head had moved.
    return results[-1][1]


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
    change = _find_rules(store, snapshot, request, found)
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
    # To give the command of a fetched thread again is to trust it here, and that of a role which
    # waits for the end of a limit ends the wait: both are changes.
    fresh = [
        agent
        for agent in change.trusted
        if agent["command"].strip() != PERSON and not is_trusted(store, agent, workdir)
    ]
    present = snapshot.get_present()
    limited = present.waiting.role if present.waiting and present.waiting.until else None
    agents = {
        role: agent
        for role, agent in change.agents.items()
        if agent in fresh
        or role == limited
        or build_agent(dict(agent), timestamp=0).hash != present.binding.get(role)
    }
    new, amended = build_rule_change(caller, snapshot, change._replace(agents=agents))
    missing = find_missing_programs(typed.agents, caller.environ, workdir, store.config)
    amended = amended._replace(left=typed.left, missing=missing)
    if not fresh and new.present == present:
        thread = snapshot.record.thread
        hint = f"`uwf thread show {thread}` tells them"
        if typed.left:
            hint = f"a command for every role leaves {', '.join(typed.left)} to its person or "
            hint += f"check; `--agent {typed.left[0]}=CMD` replaces it"
        raise Refused(
            f"thread {thread} has this workflow, these agents and limits already",
            code="already-so",
            hint=hint,
            thread=thread,
        )
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
        change.played, request.agents, find_base=find_base, may_run=may_run, keeps=True
    )


def _find_rules(
    store: Store, snapshot: Snapshot, request: AmendRequest, found: FoundWorkflow | None
) -> RuleChange:
    """Return the rules of the workflow *found*; without one, the rules in force."""
    if found is None:
        workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
        return RuleChange("amend", workflow, read_played(snapshot, workflow))
    workflow = found.workflow
    played = find_played(workflow, found.closure)
    given = request.default_agent, request.new_agents
    bound = bind_new_roles(store, snapshot, workflow, played, given)
    return RuleChange(
        "amend",
        workflow,
        played,
        agents=bound.agents,
        trusted=bound.typed,
        nodes=tuple(found.closure),
    )


# `uwf thread poke`: take the newest step back, so that its role takes it again.
#
# The old step stays in the history and its cost in the usage. State patches since the step are
# taken back with it. Only one step can be taken back; to go further back, fork.

_ANEW = "`uwf thread fork {thread} --at STEP` begins a thread before the split, which splits anew"
_AGAIN = "`uwf thread step {thread}` takes it again"


def poke_thread(
    store: Store,
    caller: Caller,
    text: str,
    *,
    hint: str = "",
    retake: Choice | None = None,
    restore: Callable[[Snapshot], None] | None = None,
) -> ThreadResult:
    """Take the newest step back; *hint* is for its role's next prompt.

    *retake* is who takes the step again afterwards: what would refuse that refuses the poke.
    *restore* is called before that, once nothing is left that would refuse it.
    """

    def build(snapshot: Snapshot) -> NewCommit:
        thread = snapshot.record.thread
        if (driver := find_driver(store, thread)) is not None:
            raise ThreadBusy(thread, driver)
        new = _build_poke(store, caller, snapshot, hint)
        if retake is not None:
            _check_retake(store, caller, snapshot, new, retake)
        if restore is not None:
            caller.check_signing(store)
            restore(snapshot)
        return new

    return steer_between_steps(store, caller, text, build)


def _check_retake(
    store: Store, caller: Caller, snapshot: Snapshot, new: NewCommit, retake: Choice
) -> None:
    """Raise what would refuse the step that is taken again after the poke *new*."""
    poked, present = snapshot._replace(record=new.record), new.present
    check_ancestors(store, poked)
    workflow = get_workflow(poked, present.workflow)
    following = decide_next(poked, present, workflow)
    role = following.role
    check_next(new.record.thread, workflow, retake.agents, following=(role,))
    if role == END or following.splits:
        return
    # Of a branch the limits are those of its trunk, where the step is counted still.
    limited, spent = read_spending(store, snapshot, snapshot.get_present())
    check_limits(limited, spent._replace(depth=spent.depth - 1))
    try:
        _, agent, _ = choose_players(store, caller, (poked, present), retake, role=role)
        if is_person(agent):
            return
        if retake.workdir is None:
            choose_place(store, caller, poked)
    except Refused as error:
        error.hint = error.hint and error.hint.replace("`uwf thread step ", "`uwf thread poke ")
        raise
    # A bad setting would be refused before the agent runs.
    read_retry(store.config, agent.payload)
    read_keep_rules(store.config)


def _build_poke(store: Store, caller: Caller, snapshot: Snapshot, hint: str) -> NewCommit:
    record = snapshot.record
    if record.status == "paused":
        raise WrongStatus(snapshot, "is paused", "`uwf thread resume {thread}` lets it go on")
    if record.status == "split":
        raise WrongStatus(snapshot, "has split: its branches take the steps", _ANEW)
    if record.depth == 0:
        raise WrongStatus(
            snapshot, "has no step to take again", "`uwf thread step {thread}` takes the first"
        )
    before = _before_newest_step(store, snapshot)
    new = build_signalled(
        snapshot,
        Cause(back_to=read_standing(before)),
        signal=build_signal("poke", timestamp=caller.now_ms(), reason=hint),
        # The thread has this node already; record_next makes it head.json again.
        nodes=(before.get_head_node(),),
    )
    workflow = parse_workflow(snapshot.get_node(record.workflow))
    gone = new.present.find_gone_role(workflow.roles)
    if gone is not None and workflow.flow is None:
        # An amend since moved the thread to a workflow without that role.
        raise position_gone(record.thread, gone, workflow)
    if before.record.workflow != record.workflow:
        then = parse_workflow(snapshot.get_node(before.record.workflow))
        flows = (read_flow(snapshot, then), read_flow(snapshot, workflow))
        check_place(record.thread, flows, new.present, workflow)
    return new


def _before_newest_step(store: Store, snapshot: Snapshot) -> Snapshot:
    node = snapshot.record.node
    for each in walk_history(store, snapshot.commit.oid, through_forks=True):
        if each.record.event == "poke":
            raise WrongStatus(snapshot, "has taken its newest step back already", _AGAIN)
        if each.record.event == "join" and each.record.node == node:
            raise WrongStatus(
                snapshot, "has joined its branches, and no agent took that step", _ANEW
            )
        if each.record.event in STEPS and each.record.node == node:
            return read_snapshot(store, each.commit.parents[0])
    raise WrongStatus(
        snapshot,
        "has its newest step from elsewhere",
        "`uwf thread fork {thread} --at STEP` begins a new thread before it",
    )
