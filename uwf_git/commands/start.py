"""Threads begin: `uwf thread start` and `uwf thread fork`."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.commands.agent_run.runs import THREAD_VARIABLE
from uwf_git.commands.caller import Caller
from uwf_git.commands.turn.branches import find_source
from uwf_git.commands.turn.choose_agent import (
    MissingProgram,
    NoAgent,
    bind_roles,
    build_agent,
    find_missing_programs,
    find_played,
    may_run,
    no_such_role,
)
from uwf_git.commands.turn.flow import choose_limits
from uwf_git.commands.turn.next_move import CONFIG_NAME, FUNCTION, PERSON
from uwf_git.commands.turn.turn import existing_directory
from uwf_git.commands.workflow.find import (
    FoundWorkflow,
    find_shipped_workflow,
    find_workflow,
    list_all_workflows,
)
from uwf_git.commands.worktree.chain import begin_fork, find_settings
from uwf_git.engine.flow_state import find_state_problem, without_iteration
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN_NODES, ROLE, STEP
from uwf_git.model.event_folds import Cause, build_start, describe_start
from uwf_git.model.event_rules import STEPS, begin_thread
from uwf_git.model.names import NodeHash, Oid, ThreadId, fold, is_oid, is_thread_id
from uwf_git.model.workflow import Workflow, describe_check, parse_role, parse_workflow
from uwf_git.store.remotes.remotes import list_remotes
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, create_head, find_head, get_head
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    build_next,
    list_preserved,
    read_snapshot,
    read_standing,
    record_next,
    record_start,
    release,
    walk_history,
)
from uwf_git.store.threads.local_files import give_workdir
from uwf_git.store.threads.naming import resolve_thread
from uwf_git.store.trust import (
    Trusted,
    is_set_by_store,
    is_trusted,
    keep_trusted,
    list_trusted,
    trust_agents,
)
from uwf_git.store.workflows import list_names, list_shipped

# `uwf thread start`: create a thread; nothing runs. Source: seed 000 section 1.2.


def empty_prompt() -> Refused:
    return Refused("the prompt is empty", code="empty-prompt", hint="say what is to be done")


class StartRequest(NamedTuple):
    workflow: str

    prompt: str | None
    """What is to be done; None: a flow has its description."""

    agents: tuple[str, ...] = ()
    """``CMD`` or settings for every role or, ``ROLE=…``, for one; people and checks keep theirs."""

    default_agent: str | None = None
    """$UWF_AGENT: the default of this process, before the configured one."""

    workdir: str | None = None
    """Where its agents run; None: the caller's directory."""

    needs_agents: bool = False
    """Refuse a role without an agent or its program: True when the thread is run at once."""

    until: str | None = None
    """A role that the workflow must have: where a run at once is to stop."""

    parent: str | None = None
    """The thread whose agent starts it; None: $UWF_THREAD_ID, if this store has that thread."""

    limits: Mapping[str, Any] = MappingProxyType({})
    """The thread's limits by their names in the StartNode, before ``config``; None: no limit."""

    state: Mapping[str, Any] | None = None
    """Members of the state that the thread begins with, over the workflow's members."""

    found: FoundWorkflow | None = None
    """The workflow, if it is known already; None: it is looked for by its name or hash."""


class Started(NamedTuple):
    workflow: NodeHash
    thread: ThreadId
    unbound: tuple[str, ...]
    """The roles that have no agent yet."""

    found: FoundWorkflow
    """The workflow that the name meant; perhaps a file of the project."""

    missing: tuple[MissingProgram, ...] = ()
    """The programs of its agents that are not found here."""

    left: tuple[str, ...] = ()
    """The roles that a command for every role left to people and checks."""


def start_thread(
    store: Store, caller: Caller, request: StartRequest, *, thread: ThreadId
) -> Started:
    """Create the thread *thread*; nothing runs."""
    if request.prompt is not None and not request.prompt.strip():
        raise empty_prompt()
    found = request.found or find_workflow(store, request.workflow, cwd=caller.cwd)
    prompt = _choose_prompt(request, found.workflow)
    workdir = existing_directory(request.workdir or caller.cwd, caller.cwd)
    now = caller.now_ms()
    played = find_played(found.workflow, found.closure)
    if request.until is not None and request.until not in {*found.workflow.roles, *played.roles}:
        raise no_such_role(request.until, played)
    typed, default = request.agents, request.default_agent
    bound = bind_roles(store, played, typed=typed, default=default, directory=workdir)
    unbound = tuple(role for role in played.roles if role not in bound.agents)
    if unbound and request.needs_agents:
        raise NoAgent(", ".join(unbound))
    missing = tuple(find_missing_programs(bound.agents, caller.environ, workdir, store.config))
    if missing and request.needs_agents:
        players, error = missing[0]
        raise Refused(
            f"no thread was made: {error.message}; it would play {', '.join(players)}",
            code="agent-missing",
            hint=error.hint,
            roles=list(players),
            **error.facts,
        )
    agents = {
        role: build_agent(agent, timestamp=now)
        for role, agent in bound.agents.items()
        # A workflow that this one runs keeps its own agents, unless others were given.
        if role in found.workflow.roles or agent != played.agent_overrides.get(role)
    }
    more = _read_more(request, found.workflow)
    parent = _find_parent(store, caller, request.parent)
    if parent is not None:
        more |= {"depth": parent.get_nesting() + 1}
    binding = {role: agent.hash for role, agent in agents.items()}
    start = build_start(found.workflow.hash, prompt, binding, more, timestamp=now)
    trust_agents(store, bound.typed, workdir)
    roles = (parse_role(node) for node in found.closure if node.type == ROLE)
    checks = (describe_check(command) for role in roles for command in role.checks)
    keep_trusted(store, [*bound.agents.values(), *checks], workdir)
    begun = begin_thread(
        thread,
        start,
        found.workflow.name,
        initial_state=found.workflow.initial_state,
        parent=None if parent is None else parent.record.thread,
    )
    new = NewCommit(
        begun.record,
        words=describe_start(start.payload["prompt"]),
        present=begun.state,
        # All built-in schemas: a copy of the thread alone must stay readable.
        nodes=(start, *found.closure, *agents.values(), *BUILTIN_NODES),
    )
    commit = record_start(store, new, caller.signing(store))
    # Before the ref: a kill in between must not leave a thread without its work directory.
    give_workdir(store, thread, workdir)
    create_head(store, thread, commit)
    return Started(found.workflow.hash, thread, unbound, found, missing, bound.left)


def _read_more(request: StartRequest, workflow: Workflow) -> dict[str, Any]:
    """Return what the StartNode has besides: the state, if it is not the workflow's, and limits."""
    limits = choose_limits(request.limits, workflow.config)
    if request.state is None:
        return limits
    state = {**(workflow.initial_state or {}), **request.state}
    if workflow.flow is not None:
        state = without_iteration(state)
        if (problem := find_state_problem(state)) is not None:
            raise Refused(
                problem,
                code="state-refused",
                hint="put what is large into a file, and its path in the state",
            )
    return {"initialState": state, **limits}


def _choose_prompt(request: StartRequest, workflow: Workflow) -> str:
    """Return the prompt that is given, or else the description of a flow."""
    if request.prompt is not None:
        return request.prompt
    if workflow.flow is None:
        raise empty_prompt()
    return workflow.description.strip() or workflow.name


def _find_parent(store: Store, caller: Caller, named: str | None) -> Snapshot | None:
    text = caller.environ.get(THREAD_VARIABLE, "") if named is None else named
    if named is None and not (is_thread_id(text) and find_head(store, ThreadId(text))):
        # The agent of a thread of another store: its id means nothing in this one.
        return None
    return read_snapshot(store, get_head(store, resolve_thread(store, text)).commit)


# What may be started from a page or a chat, where nobody reads a command before it runs.
#
# Workflows of the store, fetched or not, or that come with uwf, never from a file of the project;
# agents that are trusted, or the user's own.

Agent = dict[str, Any]

PERSON_AGENT: Agent = {"command": PERSON}


class Here(NamedTuple):
    store: Store
    cwd: str
    """Where the agents of new threads run."""

    agent: str | None
    """$UWF_AGENT: the user's own default agent, before the configured one."""


def list_startable(store: Store) -> list[dict[str, Any]]:
    # A row with a file comes with uwf: without a directory there is no file of a project.
    return [
        {**{name: row.get(name) for name in ("name", "workflow", "description")},
         "isShipped": "file" in row, "problem": row.get("error")}
        for row in list_all_workflows(store)
    ]  # fmt: skip


def find_startable(store: Store, name: str) -> FoundWorkflow:
    """Find a registered workflow, else a shipped workflow; never a file of the project."""
    if name not in list_names(store) and any(file.name == name for file in list_shipped()):
        return find_shipped_workflow(store, name)
    return find_workflow(store, name)


def find_agents(here: Here, directory: str) -> dict[str, Agent]:
    texts = dict.fromkeys(each.text for each in list_trusted(here.store))
    agents = [
        agent
        for text in texts
        if (agent := Trusted(text).agent) is not None
        and isinstance(agent.get("command"), str)
        and agent["command"] != PERSON
        and not agent["command"].startswith(FUNCTION)
        # A setting is trusted in its place only.
        and "setting" not in agent
        and is_trusted(here.store, agent, directory)
    ]
    default = find_default(here, directory)
    agents += [] if default is None else [default]
    return {name_agent(agent): agent for agent in (*agents, PERSON_AGENT)}


def find_default(here: Here, directory: str) -> Agent | None:
    """Return the default agent, if it may run: the user's own, or a trusted one of the store."""
    command = here.agent or here.store.config.get(CONFIG_NAME)
    if not command:
        return None
    agent = {"command": command}
    is_own = bool(here.agent) or not is_set_by_store(here.store, CONFIG_NAME)
    may_run = is_own and directory == here.cwd
    return agent if may_run or is_trusted(here.store, agent, directory) else None


def name_agent(agent: Agent) -> str:
    return hashlib.sha256(json.dumps(agent, sort_keys=True).encode()).hexdigest()[:16]


def check_agents(
    here: Here, found: FoundWorkflow, words: tuple[str, ...] = (), *, is_driven: bool = True
) -> None:
    """Check that the agents and checks of all roles may run here.

    If it *is_driven*, each role needs an agent.
    """
    played = find_played(found.workflow, found.closure)
    bound = bind_roles(here.store, played, typed=words, default=here.agent, directory=here.cwd)
    own = find_agents(here, here.cwd).values()
    name = found.workflow.name
    wrong = {
        role.name: f"its check {command} is not trusted here"
        for role in (parse_role(node) for node in found.closure if node.type == ROLE)
        # What a person answers is not checked.
        if bound.agents.get(role.name, {}).get("command") != PERSON
        for command in role.checks
        if not may_run(here.store, describe_check(command), workflow=name, workdir=here.cwd)
    }
    wrong |= {
        role: problem
        for role, agent in bound.agents.items()
        if (problem := find_agent_problem(here, agent, name, own)) is not None
    }
    if is_driven:
        wrong |= {role: "it has no agent" for role in played.roles if role not in bound.agents}
    if wrong:
        told = "; ".join(f"role {role}: {problem}" for role, problem in wrong.items())
        raise Refused(
            f"no thread was made: {told}",
            code="not-started-here",
            hint="roles without an agent: `uwf config set agent CMD`; commands that you have read "
            f"and that may run here: `uwf agent trust --workflow {name}`",
            roles=[*wrong],
            details=[
                {"pointer": f"/agents/{role}", "message": problem}
                for role, problem in wrong.items()
            ],
        )


def find_agent_problem(
    here: Here, agent: Agent, workflow: str, own: Collection[Agent]
) -> str | None:
    """Say why *agent* cannot play here; None if it can."""
    command = agent["command"]
    if command.startswith(FUNCTION):
        return f"{command} plays only in the program that has this function"
    if agent in own or agent == PERSON_AGENT:
        return None
    if may_run(here.store, agent, workflow=workflow, workdir=here.cwd):
        return None
    extra = f" with {json.dumps(agent['env'])}" if agent.get("env") else ""
    return f"{command}{extra} is not trusted here"


# `uwf thread fork`: begin a thread at a commit of another thread, and find that commit.
#
# A fork point is named by a step's number, a step's hash, a commit or a role. It belongs to the
# thread, to its origin, to a remote's copy, or to preserved work.

_NUMBER = re.compile("[0-9]{1,6}")
_HEX = re.compile("[0-9a-f]{4,40}")
_SHORTEST_NODE = 4
_NUMBERED = STEPS | {"start"}


def _no_such_step(thread: ThreadId, text: str) -> Refused:
    return Refused(
        f"thread {thread} has no step {text[:60]!r}",
        code="no-such-step",
        hint=f"name a step by its number or its hash (`uwf thread show {thread} --full`), or "
        "any commit of the thread",
        thread=thread,
        step=text[:60],
    )


def find_fork_point(store: Store, head: Head, text: str) -> Snapshot:
    """Return the commit that a step's number or hash, or a commit id, *text*, names."""
    if is_oid(text):
        return _find_commit(store, head, Oid(text))
    if _NUMBER.fullmatch(text):
        meant = _find_numbered(store, head, int(text))
    else:
        meant = [each for each in _candidates(store, head) if _is_meant(each, text)]
    matches = {each.commit.oid: each for each in meant}
    if not matches:
        raise _no_such_step(head.thread, text)
    if len(matches) > 1:
        told = f"{len(matches)} commits of thread {head.thread}: {', '.join([*matches][:5])}"
        raise Refused(
            f"{text!r} means {told}",
            code="ambiguous-step",
            hint="name the commit in full",
            thread=head.thread,
            matches=[*matches],
        )
    return matches.popitem()[1]


def find_turn_of(store: Store, head: Head, role: str) -> Snapshot:
    """Return the commit at which the turn of the newest step of *role* began."""
    tip = read_snapshot(store, head.commit)
    step, acted = None, set[str]()
    for node in takewhile(lambda node: node.type == STEP, tip.walk_chain()):
        acted.add(node.payload["role"])
        if role in acted:
            step = node.hash
            break
    if step is None:
        known = list(parse_workflow(tip.get_node(tip.get_present().workflow)).roles)
        if role in known:
            message = f"role {role} has taken no step in thread {head.thread}"
            hint = f"steps were taken by {', '.join(sorted(acted)) or 'no role yet'}"
        else:
            message = f"thread {head.thread} has no role {role[:60]!r}"
            hint = f"its roles are {', '.join(known)}"
        raise Refused(
            message,
            code="role-never-acted",
            hint=hint,
            thread=head.thread,
            role=role[:60],
            roles=known,
            acted=sorted(acted),
        )
    is_before = False
    for snapshot in walk_history(store, head.commit, through_forks=True):
        if is_before and snapshot.record.event != "attempt":
            return snapshot
        is_before |= snapshot.record.event in STEPS and snapshot.record.node == step
    raise _no_such_step(head.thread, step)


def _find_numbered(store: Store, head: Head, number: int) -> list[Snapshot]:
    """Return the newest step of that number, and the preserved work of that number."""
    tip = read_snapshot(store, head.commit)
    history = walk_history(store, head.commit, through_forks=True)
    first = next((each for each in history if _has_number(each, number)), None)
    kept = [read_snapshot(store, oid) for oid in list_preserved(store, head.thread)]
    meant = [each for each in kept if _has_number(each, number)]
    return [first, *meant] if first is not None and number <= tip.record.depth else meant


def _has_number(snapshot: Snapshot, number: int) -> bool:
    return snapshot.record.event in _NUMBERED and snapshot.record.depth == number


def _find_commit(store: Store, head: Head, oid: Oid) -> Snapshot:
    try:
        snapshot = read_snapshot(store, oid)
    except StoreDamaged as error:
        # No such object, or one of another kind, such as a branch's commit.
        raise _no_such_step(head.thread, oid) from error
    others = (each.commit.oid for each in _candidates(store, head))
    if snapshot.record.thread != head.thread and oid not in others:
        raise _no_such_step(head.thread, oid)
    return snapshot


def _candidates(store: Store, head: Head) -> Iterator[Snapshot]:
    yield from walk_history(store, head.commit, through_forks=True)
    for oid in list_preserved(store, head.thread):
        yield read_snapshot(store, oid)


def _is_meant(snapshot: Snapshot, text: str) -> bool:
    record = snapshot.record
    if _HEX.fullmatch(text) and snapshot.commit.oid.startswith(text):
        return True
    is_node = len(text) >= _SHORTEST_NODE and record.node.startswith(fold(text))
    return record.event in _NUMBERED and is_node


class ForkRequest(NamedTuple):
    thread: str
    """A thread id or a unique prefix of an id."""

    at: str | None = None
    """A step's number or hash, or a commit; None: the thread's head."""

    from_role: str | None = None
    """Fork before the newest step of this role; replaces *at*."""

    reason: str = ""
    workdir: str | None = None
    """Where its agents run; None: the other thread's directory, or else the caller's."""

    files: str | None = None
    """The commit of the files in *workdir*, if it is one of the other thread's chain."""


class Forked(NamedTuple):
    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    depth: int
    forked_from: ThreadId
    at: Oid

    follows: str | None = None
    """The remote whose history the forked thread adopted; None if it stays as it was."""


def fork_thread(store: Store, caller: Caller, request: ForkRequest, *, thread: ThreadId) -> Forked:
    """Begin *thread* at a commit of another thread.

    If the other thread has diverged from a remote and its local head is forked, that thread adopts
    the remote's history, also where both sides have ended; the fork keeps the local history.
    """
    head = get_head(store, resolve_thread(store, request.thread))
    point = find_point(store, head, request)
    source = find_source(store, read_snapshot(store, head.commit))
    workdir = existing_directory(request.workdir or source or caller.cwd, caller.cwd)
    new = build_next(read_standing(point), "fork", Cause(thread=thread, note=request.reason))
    commit = record_next(store, point, new, caller.signing(store))
    give_workdir(store, thread, workdir, known=find_settings(store, head.thread))
    create_head(store, thread, commit)
    begin_fork(store, caller.environ, thread, commit, request.files)
    release(store, head.thread, point.commit.oid)
    record, at = point.record, point.commit.oid
    follows = None
    if at == head.commit and list_remotes(store.config):
        # Imports all checks of verify, which only a store with remotes needs.
        from uwf_git.commands.remove import adopt_remote_history  # noqa: PLC0415 (see above)

        follows = adopt_remote_history(store, caller, head.thread, kept=at)
    return Forked(record.workflow, thread, record.node, record.depth, record.thread, at, follows)


def find_point(store: Store, head: Head, request: ForkRequest) -> Snapshot:
    if request.from_role is not None:
        return find_turn_of(store, head, request.from_role)
    if request.at is not None:
        return find_fork_point(store, head, request.at)
    return read_snapshot(store, head.commit)
