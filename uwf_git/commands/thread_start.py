"""`uwf thread start`: a thread begins; nothing runs.

Owns: who is bound to which role at the start. Knows nothing of: how agents run.
Source: seed 000 section 1.2; the order `--agent`, the workflow's overrides, its default, the
configured default is DESIGN 4's.
"""

import re
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.caller import Caller
from uwf_git.commands.choose_agent import CONFIG_NAME, NoAgent, build_agent
from uwf_git.commands.find_workdir import existing_directory
from uwf_git.commands.find_workflow import FoundWorkflow, find_workflow
from uwf_git.engine.subject import first_line
from uwf_git.errors import Refused
from uwf_git.model.builtin import BUILTIN_NODES, START
from uwf_git.model.node import Node, build_node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import reference
from uwf_git.model.thread import Present
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.model.workflow import Workflow
from uwf_git.store.heads import create_head
from uwf_git.store.record import Transition, record_start
from uwf_git.store.store import Store
from uwf_git.store.trust import trust_agents
from uwf_git.store.workdirs import set_workdir

_ROLE_WORD = re.compile(r"[^\s/=\"'\\]+")


class NoSuchRole(Refused):
    """`--agent ROLE=CMD` names a role that the workflow has not."""

    code = "no-such-role"

    def __init__(self, role: str, workflow: Workflow) -> None:
        super().__init__(
            f"workflow {workflow.name} has no role {role}",
            hint=f"its roles are {', '.join(workflow.roles)}",
            role=role,
            roles=list(workflow.roles),
        )


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


class Started(NamedTuple):
    """A thread that has begun."""

    workflow: NodeHash
    thread: ThreadId
    unbound: tuple[str, ...]
    """The roles for which nobody has said an agent yet."""


def start_thread(
    store: Store, caller: Caller, request: StartRequest, *, thread: ThreadId
) -> Started:
    """Begin the thread *thread*.

    Raises:
        NoSuchWorkflow, AmbiguousNode: no workflow is meant, or several.
        NoAgent: a role has none, and the request needs them all.
        EmptyPrompt, NoSuchRole, BadCommand, NotADirectory: the request makes no sense.
        ThreadExists: the id is taken.
    """
    if not request.prompt.strip():
        raise EmptyPrompt
    found = find_workflow(store, request.workflow)
    workdir = existing_directory(request.workdir or caller.cwd, caller.cwd)
    now = caller.now_ms()
    binding, typed = _bind(store, found.workflow, request)
    unbound = tuple(role for role in found.workflow.roles if role not in binding)
    if unbound and request.needs_agents:
        raise NoAgent(", ".join(unbound))
    agents = {role: build_agent(agent, timestamp=now) for role, agent in binding.items()}
    start = _start_node(found.workflow, request.prompt, agents, now)
    trust_agents(store, typed)
    transition = _transition(thread, found, start, agents)
    # Before the thread is there: were the order reversed, a kill between would leave a thread
    # that asks for a work directory.
    set_workdir(store, thread, workdir)
    create_head(store, thread, record_start(store, transition, caller.signing(store)))
    return Started(found.workflow.hash, thread, unbound)


def _bind(
    store: Store, workflow: Workflow, request: StartRequest
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Give the agent of each role that has one, and those that were typed here."""
    default = request.default_agent or store.config.get(CONFIG_NAME)
    configured = {"command": default} if default else None
    for_all = workflow.default_agent or configured
    binding = dict.fromkeys(workflow.roles, for_all)
    binding |= {role: agent for role, agent in workflow.agent_overrides.items() if role in binding}
    typed: list[dict[str, Any]] = []
    for text in sorted(request.agents, key=lambda each: _split_role(each, workflow)[0] or ""):
        role, command = _split_role(text, workflow)
        split_command(command)
        agent = {"command": command}
        typed.append(agent)
        binding |= dict.fromkeys(workflow.roles if role is None else [role], agent)
    if configured and configured in binding.values():
        split_command(configured["command"])
        typed.append(configured)
    return {role: agent for role, agent in binding.items() if agent is not None}, typed


def _split_role(text: str, workflow: Workflow) -> tuple[str | None, str]:
    """Read ``ROLE=CMD`` or ``CMD``; a command may hold a ``=`` of its own."""
    word, equals, command = text.partition("=")
    if not equals:
        return None, text
    if word in workflow.roles:
        return word, command
    if _ROLE_WORD.fullmatch(word):
        # No command begins so (only a shell would read it as a setting): a role was meant.
        raise NoSuchRole(word, workflow)
    return None, text


def _start_node(workflow: Workflow, prompt: str, agents: dict[str, Node], now: int) -> Node:
    payload: dict[str, Any] = {
        "workflow": reference(workflow.hash),
        "prompt": prompt,
        "agentBinding": {role: reference(agent.hash) for role, agent in agents.items()},
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
        ),
        # The built-in schemas as well: whoever gets the thread alone can read it for ever.
        nodes=(start, *found.closure, *agents.values(), *BUILTIN_NODES),
    )
