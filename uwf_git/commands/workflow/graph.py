"""`uwf workflow graph`: what the picture of a workflow shows."""

from collections.abc import Callable
from typing import NamedTuple

from uwf_git.commands.workflow.build import build_source, outside_of
from uwf_git.commands.workflow.find import FoundWorkflow, find_workflow, includes_beside
from uwf_git.engine.picture.plan import Subject, ThreadMarks
from uwf_git.model.definition.definition import FindUsed
from uwf_git.model.flow import Flow
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.workflow import (
    Graph,
    Workflow,
    parse_flow_node,
    parse_graph,
    parse_role,
    parse_workflow,
)
from uwf_git.store.store import Store


class WorkflowPicture(NamedTuple):
    subject: Subject
    found: FoundWorkflow


def picture_workflow(store: Store, text: str, *, cwd: str) -> WorkflowPicture:
    """Return what the picture of the workflow *text* shows: a name, also in *cwd*, or a hash."""
    found = find_workflow(store, text, cwd=cwd)
    nodes = {node.hash: node for node in found.closure}
    return WorkflowPicture(view_moves(found.workflow, nodes.__getitem__), found)


def picture_source(
    source: bytes, *, path: str | None, find_used: FindUsed | None = None
) -> Subject:
    """Return what the picture of the workflow file *source* shows; nothing is stored."""
    built = build_source(source, includes_beside(path), outside_of(path, find_used), timestamp=0)
    nodes = {node.hash: node for node in (built.node, *built.closure)}
    return view_moves(parse_workflow(built.node), nodes.__getitem__)


def view_moves(
    workflow: Workflow,
    get_node: Callable[[NodeHash], Node],
    mark: Callable[[Graph | Flow], ThreadMarks] | None = None,
) -> Subject:
    """Return what a picture of *workflow* shows; *mark* tells what a thread adds."""
    moves: Graph | Flow
    if workflow.flow is not None:
        moves = parse_flow_node(get_node(workflow.flow))
    else:
        moves = parse_graph(get_node(workflow.get_moderator()))
    roles = {name: parse_role(get_node(role)).description for name, role in workflow.roles.items()}
    return Subject(
        workflow.name, workflow.description, roles, moves, None if mark is None else mark(moves)
    )
