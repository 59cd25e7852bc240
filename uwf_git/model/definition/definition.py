"""Workflow definitions as values, and what the file of a flow needs from outside."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from uwf_git.model.builtin import FLOW, WORKFLOW
from uwf_git.model.flow import MAX_NESTING, SPLITTING, parent, parse_flow
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.problem import Problem
from uwf_git.model.references import find_reference
from uwf_git.model.workflow import Graph

# Workflow definitions: the parts of a workflow, as values.
#
# One from ``read_definition`` is sound: every role can be reached, and every role can reach the
# end.


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


# What the file of a flow needs from outside: its file's name, expressions, other workflows.


class FlowText(NamedTuple):
    kind: Literal["expression", "template"]
    text: str
    language: str
    """``javascript`` or ``jsonata``."""

    names: tuple[str, ...] = ()
    """The items of the maps around it, which it may name besides ``state`` and the like."""


CheckText = Callable[[FlowText], str | None]
"""Return what is wrong with a text, or None."""


class UsedWorkflow(NamedTuple):
    hash: NodeHash
    nodes: Sequence[Node]
    """All nodes that it reaches, itself among them."""

    def list_names(self) -> list[str]:
        return [str(node.payload["name"]) for node in self.nodes if node.type == WORKFLOW]

    def nesting(self) -> int:
        """Return how many threads may lie in one another while it runs, besides its own."""
        nodes = {node.hash: node for node in self.nodes}
        known: dict[NodeHash, int] = {}

        def of_workflow(name: NodeHash | None, level: int) -> int:
            if name is None or name not in nodes or level > MAX_NESTING:
                # Below so many it is too deep already.
                return 0
            if name not in known:
                known[name] = of_parts(nodes[name], level + 1)
            return known[name]

        def of_parts(workflow: Node, level: int) -> int:
            roles = [
                find_reference(nodes[target].payload.get("workflow"))
                for ref in workflow.payload["roles"].values()
                if (target := find_reference(ref)) is not None and target in nodes
            ]
            deepest = max((1 + of_workflow(inner, level) for inner in roles if inner), default=0)
            flow = find_reference(workflow.payload.get("flow"))
            if flow is None or flow not in nodes or nodes[flow].type != FLOW:
                return deepest
            return max(
                deepest, _nesting_of_flow(nodes[flow], lambda name: of_workflow(name, level))
            )

        return of_workflow(self.hash, 0)


FindUsed = Callable[[str], "UsedWorkflow | str"]
"""Find the workflow that a flow names; a text says why there is none."""


def not_checked(_text: FlowText) -> str | None:
    """Return None: nothing is known to be wrong with a text."""
    return None


def _not_found(_name: str) -> str:
    return "no other workflow is known here"


class Surroundings(NamedTuple):
    """Where a file lies, and who checks what it refers to."""

    name: str | None = None
    """The name of a workflow whose file is a bare container: the name of the file."""

    check_text: CheckText = not_checked
    find_used: FindUsed = _not_found


def _nesting_of_flow(node: Node, of_workflow: Callable[[NodeHash | None], int]) -> int:
    flow = parse_flow(node.payload)
    deepest: dict[str, int] = {}
    for place in sorted(flow.nodes, key=lambda each: each.count("/")):
        here = flow.nodes[place]
        up = parent(place)
        deepest[place] = (deepest[up] if up else 0) + (here.kind in SPLITTING)
    inner = [
        deepest[place] + of_workflow(each.workflow)
        for place, each in flow.nodes.items()
        if each.kind == "workflow"
    ]
    return max([0, *deepest.values(), *inner])


__all__ = ["CheckText", "FindUsed", "FlowText", "Surroundings", "UsedWorkflow"]
