"""`uwf thread start`: a thread begins; nothing runs.

Owns: what a thread begins with. Knows nothing of: how agents run, who plays what.
Source: seed 000 section 1.2.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.commands.bind_roles import NoSuchRole, bind_roles
from uwf_git.commands.caller import Caller
from uwf_git.commands.check_limits import choose_limits
from uwf_git.commands.choose_agent import NoAgent, build_agent
from uwf_git.commands.find_workdir import existing_directory
from uwf_git.commands.find_workflow import FoundWorkflow, find_workflow
from uwf_git.engine.subject import first_line
from uwf_git.errors import Refused
from uwf_git.model.builtin import BUILTIN_NODES, START
from uwf_git.model.node import Node, build_node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import reference
from uwf_git.model.signal import LIMITS
from uwf_git.model.thread import Present
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.model.workflow import Workflow
from uwf_git.store.heads import create_head
from uwf_git.store.record import Transition, record_start
from uwf_git.store.store import Store
from uwf_git.store.trust import trust_agents
from uwf_git.store.workdirs import set_workdir


class EmptyPrompt(Refused):
    """There is nothing to do."""

    code = "empty-prompt"

    def __init__(self) -> None:
        super().__init__("the prompt is empty", hint='say what is to be done: -p "…"')


class StartRequest(NamedTuple):
    """What is asked of a new thread."""

    workflow: str
    """A name or a hash."""

    prompt: str
    agents: tuple[str, ...] = ()
    """``CMD`` for every role, or ``ROLE=CMD`` for one."""

    default_agent: str | None = None
    """$UWF_AGENT: the default of this process, before the configured one."""

    workdir: str | None = None
    """Where its agents run; None is where the caller is."""

    needs_agents: bool = False
    """Whether a role that nobody plays is refused, as when the thread is run at once."""

    until: str | None = None
    """A role that the workflow must have, as when the thread is run at once until that."""

    limits: Mapping[str, Any] = MappingProxyType({})
    """What the thread may use up, by the names that its StartNode has (``maxSteps``, …).

    They come before those of the workflow's ``config``, and None takes one of those away.
    """


class Started(NamedTuple):
    """A thread that has begun."""

    workflow: NodeHash
    thread: ThreadId
    unbound: tuple[str, ...]
    """The roles for which nobody has said an agent yet."""

    found: FoundWorkflow
    """What its name meant: perhaps a file of the project."""


def start_thread(
    store: Store, caller: Caller, request: StartRequest, *, thread: ThreadId
) -> Started:
    """Begin the thread *thread*.

    Raises:
        NoSuchWorkflow, WorkflowRemoved, AmbiguousNode: no workflow is meant, or several.
        BadLocalWorkflow: a file of the project is meant, and that is not right.
        NoAgent: a role has none, and the request needs them all.
        EmptyPrompt, NoSuchRole, BadCommand, NotADirectory, BadLimit: the request makes no sense.
        ThreadExists: the id is taken.
    """
    if not request.prompt.strip():
        raise EmptyPrompt
    found = find_workflow(store, request.workflow, cwd=caller.cwd)
    if request.until is not None and request.until not in found.workflow.roles:
        raise NoSuchRole(request.until, found.workflow)
    workdir = existing_directory(request.workdir or caller.cwd, caller.cwd)
    now = caller.now_ms()
    limits = choose_limits(request.limits, found.workflow.config)
    bound = bind_roles(store, found.workflow, typed=request.agents, default=request.default_agent)
    unbound = tuple(role for role in found.workflow.roles if role not in bound.agents)
    if unbound and request.needs_agents:
        raise NoAgent(", ".join(unbound))
    agents = {role: build_agent(agent, timestamp=now) for role, agent in bound.agents.items()}
    start = _start_node(found.workflow, request._replace(limits=limits), agents, now)
    trust_agents(store, bound.typed)
    transition = _transition(thread, found, start, agents)
    # Before the thread is there: were the order reversed, a kill between would leave a thread
    # that asks for a work directory.
    set_workdir(store, thread, workdir)
    create_head(store, thread, record_start(store, transition, caller.signing(store)))
    return Started(found.workflow.hash, thread, unbound, found)


def _start_node(
    workflow: Workflow, request: StartRequest, agents: dict[str, Node], now: int
) -> Node:
    payload: dict[str, Any] = {
        "workflow": reference(workflow.hash),
        "prompt": request.prompt,
        "agentBinding": {role: reference(agent.hash) for role, agent in agents.items()},
        **request.limits,
    }
    return build_node(START, payload, timestamp=now)


def _transition(
    thread: ThreadId, found: FoundWorkflow, start: Node, agents: dict[str, Node]
) -> Transition:
    workflow = found.workflow
    return Transition(
        record=TransitionRecord(
            thread=thread,
            event="start",
            status="ready",
            node=start.hash,
            depth=0,
            workflow=workflow.hash,
            workflow_name=workflow.name,
        ),
        said=first_line(start.payload["prompt"]),
        present=Present(
            workflow=workflow.hash,
            binding={role: agent.hash for role, agent in agents.items()},
            started_at=start.timestamp,
            state=workflow.initial_state or {},
            limits={name: start.payload[name] for name in LIMITS if name in start.payload},
        ),
        # The built-in schemas as well: whoever gets the thread alone can read it for ever.
        nodes=(start, *found.closure, *agents.values(), *BUILTIN_NODES),
    )
