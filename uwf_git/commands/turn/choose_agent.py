"""Choose the agent of a step: `--agent`, then the thread's binding, then the configured default.

A command that only came with a fetched thread does not run until it is trusted here.
"""

import json
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.node import Node, build_node
from uwf_git.model.thread import ThreadState
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, get_typed
from uwf_git.store.trust import is_trusted

CONFIG_NAME = "uwf.agent"

PERSON = "human"
"""The command of a role that a person plays: the thread waits for `uwf thread answer`."""


class NoAgent(Refused):
    """The role has no agent."""

    code = "no-agent"

    def __init__(self, role: str) -> None:
        super().__init__(
            f"no agent is bound to role {role}",
            hint="give one with --agent CMD, or a default with `uwf config set agent CMD`",
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

    command: str | None = None
    """``--agent``: this command (``CMD``, or ``ROLE=CMD``), for this step only."""

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
        MissingNode, DamagedNode: the bound agent cannot be read.
    """
    own = _command_for(role, choice.command, present)
    if own is None and role not in present.binding:
        own = choice.default or store.config.get(CONFIG_NAME) or None
        if own is None:
            raise NoAgent(role)
    if own is not None:
        debug("PFC8BH1W", "agent named here", role=role, agent=agent_name(own))
        # Typed or configured here, so it may run here.
        return build_agent({"command": own}, timestamp=snapshot.commit.time_s * 1000)
    node = get_typed(snapshot, present.binding[role], AGENT_CONFIG)
    is_fit = choice.trust or is_person(node) or is_trusted(store, node.payload)
    agent = agent_name(node.payload["command"])
    debug("6MNHY3VE", "agent bound", role=role, agent=agent, node=node.hash, may_run=is_fit)
    if not is_fit:
        raise AgentNotTrusted(snapshot.record.thread, role, node.payload)
    return node


def is_person(agent: Node) -> bool:
    """Check whether the agent is a person: nothing runs, and the thread waits for an answer."""
    return bool(agent.payload["command"].strip() == PERSON)


def _command_for(role: str, text: str | None, present: ThreadState) -> str | None:
    """Return the command of ``--agent`` for *role*: ``CMD``, or ``ROLE=CMD`` of this role."""
    word, equals, command = (text or "").partition("=")
    if equals and (word == role or word in present.binding):
        return command if word == role else None
    return text


def build_agent(payload: dict[str, Any], *, timestamp: int) -> Node:
    """Build an AgentConfig node."""
    return build_node(AGENT_CONFIG, payload, timestamp=timestamp)
