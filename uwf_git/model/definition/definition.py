"""Workflow definitions: the parts of a workflow, as values.

One from ``read_definition`` is sound: every role can be reached, and every role can reach the end.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.problem import Problem
from uwf_git.model.transition import Graph


class AgentSpec(NamedTuple):
    """How to run an agent. None means not given, and is not stored."""

    command: str
    """Words as a shell would split them; no shell runs them."""

    protocol: str | None = None
    """``positional`` (seed 000) or ``flags`` (seed 001)."""

    timeout: float | None = None
    """Seconds."""

    retries: int | None = None
    backoff: float | None = None
    """Seconds before the first retry; the wait grows by as much with each later one."""

    env: Mapping[str, str] | None = None
    """Plain settings by name, added to the inherited environment; never secrets."""

    def as_payload(self) -> dict[str, Any]:
        """Return the AgentConfig payload: only what is set, so that equal agents have one name."""
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
    """One role: its prompt and the output that it must produce."""

    name: str
    description: str
    system_prompt: str
    extract_prompt: str | None
    """How to get the meta out of the agent's answer; None: by the schema alone."""

    output_schema: dict[str, Any] | bool
    """The JSON Schema of the role's meta."""

    workflow: NodeHash | None = None
    """The workflow that plays it; None: an agent does."""

    used: Sequence[Node] = ()
    """All nodes that this workflow reaches, itself among them."""

    checks: tuple[str, ...] = ()
    """The commands that have to succeed before an answer is recorded."""

    output_file: str | None = None
    """A template for the path at which its agent may leave its meta."""

    input_files: tuple[str, ...] = ()
    """Templates for paths, or patterns, of the files that its agent is given."""


class FlowDefinition(NamedTuple):
    """The containers and agents of a workflow."""

    nodes: Mapping[str, Mapping[str, Any]]
    """The nodes of the Flow payload, by place."""

    language: str | None
    """The language of conditions and templates, if the file says it."""

    used: Sequence[Node] = ()
    """The workflows that it runs, each with all nodes that it reaches."""


class Definition(NamedTuple):
    """One workflow: a graph or a flow."""

    name: str
    description: str
    roles: Mapping[str, RoleDefinition]
    graph: Graph
    """Empty if it is a flow."""

    default_agent: AgentSpec | None
    """The agent of a role without a binding; None: the user's configuration decides."""

    agent_overrides: Mapping[str, AgentSpec]
    """By role."""

    initial_state: dict[str, Any] | None
    config: dict[str, Any] | None = None
    """The limits that a thread begins with unless it has its own, and what its events contain."""

    flow: FlowDefinition | None = None
    """None: it is a graph."""

    warnings: tuple[Problem, ...] = ()
    """What may be a mistake, by line."""
