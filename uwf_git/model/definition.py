"""Workflow definitions: what a workflow says, as values.

Owns: the parts of a workflow. Knows nothing of: files, nodes, how a definition is checked.
Always true: a definition that ``read_definition`` gave is sound: every role can be reached, and
every role can reach the end.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.model.transition import Graph


class AgentSpec(NamedTuple):
    """How to run an agent. What is None was not said, and is not stored."""

    command: str
    """Words as a shell would split them; no shell runs them."""

    protocol: str | None = None
    """``positional`` (seed 000) or ``flags`` (seed 001)."""

    timeout: float | None = None
    """Seconds."""

    retries: int | None = None
    backoff: float | None = None
    """Seconds before the first retry; each later one waits as much longer."""

    env: Mapping[str, str] | None = None
    """Plain settings by name, added to the inherited environment; never secrets."""

    def as_payload(self) -> dict[str, Any]:
        """Give the AgentConfig payload: only what is set, so that one command has one name."""
        fields = {
            "command": self.command,
            "protocol": self.protocol,
            "timeout": self.timeout,
            "retries": self.retries,
            "backoff": self.backoff,
            "env": None if self.env is None else dict(self.env),
        }
        return {name: value for name, value in fields.items() if value is not None}


class RoleDefinition(NamedTuple):
    """One role: what an agent is told, and what it has to hand in."""

    name: str
    description: str
    system_prompt: str
    extract_prompt: str | None
    """How to get the meta out of the agent's words; None leaves that to the schema alone."""

    output_schema: dict[str, Any] | bool
    """The JSON Schema of the role's meta."""


class Definition(NamedTuple):
    """One workflow."""

    name: str
    description: str
    roles: Mapping[str, RoleDefinition]
    graph: Graph
    default_agent: AgentSpec | None
    """Who plays a role that nothing else binds; None leaves it to the user's configuration."""

    agent_overrides: Mapping[str, AgentSpec]
    """By role."""

    initial_state: dict[str, Any] | None
    config: dict[str, Any] | None = None
    """The limits that a thread begins with unless it has its own, and what its events tell."""
