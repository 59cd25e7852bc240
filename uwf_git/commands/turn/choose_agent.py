"""Choose the agent of a step: `--agent`, then the thread's binding, then the configured default.

A command that only came with a fetched thread does not run until it is trusted here.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.turn.typed_agents import TypedAgent, lay_over, read_typed
from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.node import Node, build_node
from uwf_git.model.thread import ThreadState
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, get_typed
from uwf_git.store.trust import is_trusted

CONFIG_NAME = "uwf.agent"

PERSON = "human"
"""The command of a role that a person plays: the thread waits for `uwf thread answer`."""


class NoAgent(Refused):
    """The role has no agent."""

    code = "no-agent"

    def __init__(self, role: str, thread: ThreadId | None = None) -> None:
        give = "give one with --agent CMD"
        if thread is not None:
            give = f"bind one: `uwf thread amend {thread} --agent {shlex.quote(f'{role}=CMD')}`"
        super().__init__(
            f"no agent is bound to role {role}",
            hint=f"{give}, or a default with `uwf config set agent CMD`",
            role=role,
        )


class AgentNotTrusted(Refused):
    """The command came from elsewhere and is not trusted here."""

    code = "agent-not-trusted"

    def __init__(self, thread: ThreadId, role: str, agent: dict[str, Any]) -> None:
        # The whole command: a cut text could hide its harmful part.
        extra = f" with {json.dumps(agent['env'])}" if agent.get("env") else ""
        super().__init__(
            f"role {role} would run a command that came from elsewhere: {agent['command']}{extra}",
            hint=f"read it; if it may run here: `uwf thread step {thread} --trust`; "
            "or use your own with --agent CMD",
            thread=thread,
            role=role,
            agent=agent,
        )


class Choice(NamedTuple):
    """The options of a step that choose its agent."""

    agents: tuple[str, ...] = ()
    """Values of ``--agent``, for this step or drive only: ``[ROLE=]CMD`` or settings."""

    default: str | None = None
    """$UWF_AGENT: the default agent, before the configured one."""

    trust: bool = False
    """``--trust``: allow the thread's own command from now on."""


def choose_agent(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> Node:
    """Return the AgentConfig node of the agent that plays *role*.

    Raises:
        NoAgent: no agent is bound, and there is no default.
        AgentNotTrusted: its command came from elsewhere.
        What ``read_typed`` and ``lay_over`` raise.
        MissingNode, DamagedNode: the bound agent cannot be read.
    """
    typed = _read_typed(snapshot, present, role, choice)
    node, may_run = None, True
    if not any("command" in each.settings for each in typed):
        node, may_run = _find_bound(store, snapshot, present, role=role, choice=choice)
    if typed:
        base = None if node is None else node.payload
        laid = lay_over(role, base, typed, may_run=may_run, keeps=False)
        node = build_agent(laid.agent, timestamp=snapshot.commit.time_s * 1000)
        may_run = laid.is_own
    if node is None:
        raise NoAgent(role, snapshot.record.thread)
    may_run = may_run or choice.trust or is_person(node)
    agent = agent_name(node.payload["command"])
    if typed:
        debug("PFC8BH1W", "agent named here", role=role, agent=agent, may_run=may_run)
    else:
        debug("6MNHY3VE", "agent bound", role=role, agent=agent, node=node.hash, may_run=may_run)
    if not may_run:
        raise AgentNotTrusted(snapshot.record.thread, role, node.payload)
    return node


def _read_typed(
    snapshot: Snapshot, present: ThreadState, role: str, choice: Choice
) -> list[TypedAgent]:
    if not choice.agents:
        return []
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    return [each for each in read_typed(workflow, choice.agents) if each.is_for(role)]


def _find_bound(
    store: Store, snapshot: Snapshot, present: ThreadState, *, role: str, choice: Choice
) -> tuple[Node | None, bool]:
    """Return the agent of *role* without ``--agent``, and whether it may run here."""
    if role in present.binding:
        node = get_typed(snapshot, present.binding[role], AGENT_CONFIG)
        return node, is_trusted(store, node.payload)
    default = choice.default or store.config.get(CONFIG_NAME) or None
    if default is None:
        return None, True
    # Configured here, so it may run here.
    return build_agent({"command": default}, timestamp=snapshot.commit.time_s * 1000), True


def is_person(agent: Node) -> bool:
    """Check whether the agent is a person: nothing runs, and the thread waits for an answer."""
    return bool(agent.payload["command"].strip() == PERSON)


def build_agent(payload: dict[str, Any], *, timestamp: int) -> Node:
    """Build an AgentConfig node."""
    return build_node(AGENT_CONFIG, payload, timestamp=timestamp)


def settings_by_role(agents: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what AgentConfig payloads have besides the command; roles without any are absent."""
    settings = {
        role: {name: value for name, value in agent.items() if name != "command"}
        for role, agent in agents.items()
    }
    return {role: each for role, each in settings.items() if each}
