"""The roles that a thread and its branches may come to: its workflow's, and of those in it."""

from collections.abc import Iterable, Iterator, Sequence

from uwf_git.commands.turn.bind_roles import find_played
from uwf_git.commands.turn.typed_agents import no_such_role, read_typed
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.references import find_reference
from uwf_git.model.workflow import Workflow, parse_flow_node, parse_role, parse_workflow
from uwf_git.store.threads.definitions import get_flow, get_role, get_workflow
from uwf_git.store.threads.snapshot import Snapshot


def read_played(snapshot: Snapshot, workflow: Workflow, new: Iterable[Node] = ()) -> Workflow:
    """Return *workflow* with the roles that need agents: its own, and those of workflows in it.

    Its nodes are among the *new* ones, or the thread at *snapshot* has them.

    Raises:
        MissingNode, DamagedNode: one of them cannot be read.
    """
    made = {node.hash: node for node in new}
    found: dict[NodeHash, Node] = {}

    def read(name: NodeHash) -> Node:
        found[name] = made.get(name) or snapshot.get_node(name)
        return found[name]

    waiting = [workflow]
    while waiting:
        each = waiting.pop()
        nodes = [parse_role(read(role)).workflow for role in each.roles.values()]
        if each.flow is not None:
            places = parse_flow_node(read(each.flow)).nodes.values()
            nodes += [find_reference(node.fields.get("workflow")) for node in places]
        waiting += [
            parse_workflow(read(name)) for name in nodes if name is not None and name not in found
        ]
    return find_played(workflow, found.values())


def check_roles(snapshot: Snapshot, until: str | None, agents: Sequence[str]) -> frozenset[str]:
    """Check that *until* and the values of ``--agent`` name roles of the thread or its branches.

    Returns:
        All these roles; none if nothing was named.

    Raises:
        Refused: one of them does not.
        BadCommand, Refused: an agent is invalid.
        MissingNode, DamagedNode: a workflow cannot be read.
    """
    if until is None and not agents:
        return frozenset()
    workflow = get_workflow(snapshot, snapshot.record.workflow)
    everything = workflow._replace(roles=_collect(snapshot, workflow))
    if until is not None and until not in everything.roles:
        raise no_such_role(until, everything)
    read_typed(everything, agents)
    return frozenset(everything.roles)


def _collect(snapshot: Snapshot, workflow: Workflow) -> dict[str, NodeHash]:
    found = {workflow.hash: workflow}
    waiting = [workflow]
    roles: dict[str, NodeHash] = {}
    while waiting:
        each = waiting.pop()
        roles = {**each.roles, **roles}
        for name in _list_used(snapshot, each):
            if name not in found:
                found[name] = get_workflow(snapshot, name)
                waiting.append(found[name])
    return roles


def _list_used(snapshot: Snapshot, workflow: Workflow) -> Iterator[NodeHash]:
    if workflow.flow is None:
        names = [get_role(snapshot, role).workflow for role in workflow.roles.values()]
    else:
        nodes = get_flow(snapshot, workflow.flow).nodes.values()
        names = [find_reference(node.fields.get("workflow")) for node in nodes]
    return (name for name in names if name is not None)
