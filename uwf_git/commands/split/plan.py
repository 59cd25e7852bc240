"""Plan the branches of a split: what a container, or a role played by a workflow, asks for.

The first to split evaluates expressions; whoever checks a split reads their values from its
StartNodes, and everything else follows again.
Format: FORMAT.md, "Branches".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.commands.split.derived import Branch, SplitPlan
from uwf_git.errors import Refused
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.flow import (
    MAX_ITEMS,
    MAX_NESTING,
    SPLITTING,
    Flow,
    FlowNode,
    NotAPosition,
    Position,
    parse_position,
)
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node
from uwf_git.model.workflow import Workflow
from uwf_git.store.threads.definitions import get_flow, get_role, get_workflow
from uwf_git.store.threads.snapshot import Snapshot


class SplitRefused(Refused):
    """The thread cannot split there."""

    code = "split-refused"


class Asked(NamedTuple):
    """The values of the expressions of a split."""

    items: Sequence[Any] = ()
    """Of a map: what its list holds."""

    prompt: str = ""
    """Of a workflow: its prompt."""

    state: Mapping[str, Any] | None = None
    """Of a workflow: the state that it begins with; None: its own."""


class Container(NamedTuple):
    """What splits a thread: a place of its flow, or a role of its graph that a workflow plays."""

    at: str
    label: str
    kind: str
    workflow: Workflow
    """The thread's."""

    node: FlowNode | None
    """Its node in the flow; None in a graph."""

    used: NodeHash
    """The Workflow node that its branches run."""

    flow: Flow | None = None

    @property
    def place(self) -> str:
        """Its place in the flow."""
        return "" if self.node is None else self.node.place

    @property
    def item(self) -> str:
        """Of a map: the name of an item."""
        return "item" if self.node is None else self.node.item

    @property
    def policy(self) -> Mapping[str, Any]:
        """Its fields; a role of a graph has none."""
        return {} if self.node is None else self.node.fields


def read_flow(snapshot: Snapshot, workflow: Workflow) -> Flow | None:
    """Return the flow that the thread runs; None if it runs a graph."""
    return None if workflow.flow is None else get_flow(snapshot, workflow.flow)


def read_entry(snapshot: Snapshot) -> Position | None:
    """Return where the thread begins in its flow, if it is a branch of one."""
    entry = snapshot.get_start().payload.get("entry")
    return None if entry is None else parse_position(entry)


def find_container(snapshot: Snapshot, at: str) -> Container:
    """Return what splits the thread at *at*.

    Raises:
        SplitRefused: nothing there does.
    """
    workflow = get_workflow(snapshot, snapshot.record.workflow)
    flow = read_flow(snapshot, workflow)
    if flow is None:
        used = _find_played(snapshot, workflow, at)
        if used is None:
            raise SplitRefused(f"{at or 'no Uwf-At'} is no role that a workflow plays")
        return Container(at, at, "workflow", workflow, None, used)
    try:
        node = flow.nodes.get(parse_position(at).place)
    except NotAPosition:
        node = None
    if node is None or node.kind not in SPLITTING:
        raise SplitRefused(f"{at} is no place at which the flow splits")
    used = node.workflow or workflow.hash
    return Container(at, node.label, node.kind, workflow, node, used, flow)


def is_played_by_workflow(snapshot: Snapshot, workflow: Workflow, role: str) -> bool:
    """Check whether a whole workflow plays *role* of a graph."""
    return _find_played(snapshot, workflow, role) is not None


def _find_played(snapshot: Snapshot, workflow: Workflow, role: str) -> NodeHash | None:
    if role not in workflow.roles:
        return None
    return get_role(snapshot, workflow.roles[role]).workflow


def plan_split(snapshot: Snapshot, container: Container, asked: Asked) -> SplitPlan:
    """Return the split of the thread at *snapshot* that *container* asks for.

    Raises:
        SplitRefused: there can be no such split.
    """
    if snapshot.get_nesting() >= MAX_NESTING:
        raise SplitRefused(f"threads would be nested deeper than {MAX_NESTING}")
    if len(asked.items) > MAX_ITEMS:
        raise SplitRefused(f"{container.label} would have more than {MAX_ITEMS:,} branches")
    if container.kind == "workflow":
        return _plan_workflow(snapshot, container, asked)
    branches = tuple(_own_branches(snapshot, container, asked.items))
    return SplitPlan(container.at, container.label, branches)


def read_asked(container: Container, starts: Sequence[Node]) -> Asked:
    """Return what the expressions of a split gave, from the StartNodes of its branches.

    Raises:
        SplitRefused: they cannot come from this container.
    """
    if container.kind == "map":
        name = container.item
        try:
            return Asked([start.payload["initialState"][name] for start in starts])
        except KeyError:
            raise SplitRefused(f"it has a branch without {name}") from None
    if container.kind == "workflow" and starts:
        payload = starts[0].payload
        return Asked(prompt=payload["prompt"], state=payload.get("initialState"))
    return Asked()


def _plan_workflow(snapshot: Snapshot, container: Container, asked: Asked) -> SplitPlan:
    workflow = get_workflow(snapshot, container.used)
    present = snapshot.get_present()
    date_ms = snapshot.commit.time_s * 1000
    binding: dict[str, NodeHash] = {}
    agents: list[Node] = []
    for role in workflow.roles:
        if role in present.binding:
            binding[role] = present.binding[role]
            continue
        payload = workflow.agent_overrides.get(role, workflow.default_agent)
        if payload is not None:
            agents.append(build_node(AGENT_CONFIG, payload, timestamp=date_ms))
            binding[role] = agents[-1].hash
    # Those that are none of the thread's own roles are for workflows further inside.
    inner = [role for role in sorted(present.binding) if role not in container.workflow.roles]
    binding = {role: present.binding[role] for role in inner} | binding
    branch = Branch(
        container.label,
        workflow.hash,
        workflow.name,
        asked.prompt,
        binding,
        asked.state,
        own_state=workflow.initial_state or {},
    )
    return SplitPlan(container.at, container.label, (branch,), tuple(agents))


def _own_branches(
    snapshot: Snapshot, container: Container, items: Sequence[Any]
) -> Iterable[Branch]:
    present = snapshot.get_present()
    flow, at = container.flow, container.at
    if flow is None:
        return
    prompt = snapshot.get_start().payload["prompt"]

    def branch(label: str, entry: str, state: Mapping[str, Any] | None) -> Branch:
        return Branch(
            label,
            present.workflow,
            snapshot.record.workflow_name,
            prompt,
            present.binding,
            state,
            entry,
        )

    if container.kind == "parallel":
        for number, place in enumerate(flow.children(container.place)):
            yield branch(flow.nodes[place].label, f"{at}/{number}", None)
        return
    name = container.item
    for number, item in enumerate(items):
        yield branch(container.label, f"{at}.{number}", {name: item, f"{name}Index": number})
