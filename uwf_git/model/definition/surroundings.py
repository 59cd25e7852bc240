"""What the file of a flow needs from outside: its file's name, expressions, other workflows."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from uwf_git.model.builtin import FLOW, WORKFLOW
from uwf_git.model.flow import MAX_NESTING, SPLITTING, BadFlow, parent, parse_flow
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference


class FlowText(NamedTuple):
    """A text of a flow that is evaluated while it runs."""

    kind: Literal["expression", "template"]
    text: str
    language: str
    """``javascript`` or ``jsonata``."""

    names: tuple[str, ...] = ()
    """The items of the maps around it, which it may name besides ``state`` and the like."""


CheckText = Callable[[FlowText], str | None]
"""Return what is wrong with a text, or None."""


class UsedWorkflow(NamedTuple):
    """A stored workflow that a flow runs."""

    hash: NodeHash
    nodes: Sequence[Node]
    """All nodes that it reaches, itself among them."""

    def list_names(self) -> list[str]:
        """List the names of it and of the workflows inside it."""
        return [str(node.payload["name"]) for node in self.nodes if node.type == WORKFLOW]

    def nesting(self) -> int:
        """Return how many threads may lie in one another while it runs, besides its own.

        Raises:
            BadFlow: one of its flows cannot be read.
        """
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
    """The name of a workflow whose file is a bare container: that of its file."""

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


__all__ = ["BadFlow", "CheckText", "FindUsed", "FlowText", "Surroundings", "UsedWorkflow"]
