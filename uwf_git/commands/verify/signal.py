"""Check an amend (can the thread go on under these rules) and a poke (where it goes back to).

Format: FORMAT.md, "What events do".
"""

from collections.abc import Generator, Iterator

from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.nodes import NodeChecks
from uwf_git.engine.append_check import Rules, find_other_change
from uwf_git.engine.flow_change import find_lost_place
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import WORKFLOW
from uwf_git.model.event_folds import Standing
from uwf_git.model.event_rules import STEPS
from uwf_git.model.limit import find_limit_problem
from uwf_git.model.node import Node
from uwf_git.model.references import find_reference
from uwf_git.model.thread import NotAPresent, ThreadState
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.model.workflow import parse_flow_node, parse_graph
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.objects.commit import read_commit, read_commit_file
from uwf_git.store.objects.message import BadMessage
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.threads.message import parse_thread_message
from uwf_git.store.threads.now_file import parse_now
from uwf_git.store.threads.snapshot import NOW_FILE, Snapshot


def check_amend(
    nodes: NodeChecks,
    site: Location,
    made: Snapshot,
    *,
    between: tuple[Standing, Standing],
    signal: Node,
) -> Iterator[Finding]:
    """Check the amendment of *signal*; *between* is where the thread stands before and after."""
    before, after = between
    record, is_branch = made.record, _is_branch(made)
    limits = signal.payload.get("limits", {})
    if is_branch and limits:
        message = f"amend gives limits to a branch: {', '.join(limits)}"
        yield site.finding(message, node=signal.hash)
    for name, value in limits.items():
        problem = None if value is None else find_limit_problem(name, value)
        if problem is not None:
            yield site.finding(f"the limit {name} {problem}", node=signal.hash)
    name = after.state.workflow
    if record.workflow != name:
        message = f"Uwf-Workflow is {record.workflow}, and amend leads to {name}"
        yield site.finding(message, node=record.workflow)
    try:
        workflow = nodes.get(site, name)
    except MissingNode:
        message = f"the workflow in force is {name}, which is not in the commit"
        yield site.finding(message, node=name)
        return
    except StoreDamaged:
        return  # reported for the commit that added it
    if workflow.type != WORKFLOW:
        message = f"the workflow in force is {workflow.hash}, which is no Workflow"
        yield site.finding(message, node=workflow.hash)
        return
    yield from _check_workflow(site, record, workflow)
    if workflow.hash == before.state.workflow:
        return
    if is_branch:
        message = f"amend gives a branch another workflow than its split: {workflow.hash}"
        yield site.finding(message, node=workflow.hash)
        return
    action = signal.payload["action"]
    yield from _check_position(nodes, site, before.state, workflow, is_append=action == "append")


def _is_branch(snapshot: Snapshot) -> bool:
    try:
        return snapshot.get_trunk() is not None
    except StoreDamaged:
        return False  # reported for the file


def _check_workflow(site: Location, record: TransitionRecord, workflow: Node) -> Iterator[Finding]:
    name = workflow.payload["name"]
    if record.workflow_name != name:
        message = f"Uwf-Workflow-Name is {record.workflow_name!r}, and its name is {name!r}"
        yield site.finding(message, node=workflow.hash)


def _check_position(
    nodes: NodeChecks, site: Location, present: ThreadState, workflow: Node, *, is_append: bool
) -> Iterator[Finding]:
    try:
        old = _read_rules(nodes, site, nodes.get(site, present.workflow))
        new = _read_rules(nodes, site, workflow)
    except StoreDamaged:
        return  # reported for the commit that added it
    if present.split is not None and not is_append:
        message = f"the thread has split, and gets another workflow: {workflow.hash}"
        yield site.finding(message, node=workflow.hash)
        return
    other = find_other_change(old, new) if is_append else None
    if other is not None:
        message = f"append does more than add to the workflow: {workflow.hash} {other}"
        yield site.finding(message, node=workflow.hash)
        return
    lost = find_lost_place(old.flow, new.flow, present)
    if lost is not None:
        message = f"the thread stands at {lost}, and workflow {workflow.hash} differs on the way"
        yield site.finding(message, node=workflow.hash)
    gone = None
    if old.flow is None:
        gone = present.find_gone_role(workflow.payload["roles"] if new.flow is None else ())
    if gone is not None:
        message = f"the thread stands at {gone!r}, which is no role of workflow {workflow.hash}"
        yield site.finding(message, node=workflow.hash)


def _read_rules(nodes: NodeChecks, site: Location, workflow: Node) -> Rules:
    flow = find_reference(workflow.payload.get("flow"))
    graph = find_reference(workflow.payload.get("moderator"))
    return Rules(
        workflow.payload,
        None if flow is None else parse_flow_node(nodes.get(site, flow)),
        None if graph is None else parse_graph(nodes.get(site, graph)),
    )


def find_poked(
    objects: ObjectStore, site: Location, record: TransitionRecord, before: Oid
) -> Generator[Finding, None, Standing | None]:
    """Check the head that a poke goes back to; *before* is the commit before the poke.

    Returns:
        The thread before the step that is taken back; None if it cannot be read.
    """
    try:
        at = _before_step(objects, before)
        if at is None:
            yield site.finding("poke comes after no step")
            return None
        view = read_commit(objects, at)
        poked = Standing(
            parse_thread_message(view.message),
            parse_now(read_commit_file(objects, view, NOW_FILE)).present,
        )
    except (StoreDamaged, BadMessage, NotAPresent):
        return None  # reported for that commit
    head = poked.record.node
    if record.node != head:
        message = f"Uwf-Node is {record.node}, and {head} was before the step that is taken back"
        yield site.finding(message)
    return poked


def _before_step(objects: ObjectStore, oid: Oid) -> Oid | None:
    """Return the commit before the step that made the head of *oid*; None if there is no step."""
    view = read_commit(objects, oid)
    node = parse_thread_message(view.message).node
    while view.parents:
        record = parse_thread_message(view.message)
        if record.event in STEPS and record.node == node:
            return view.parents[0]
        view = read_commit(objects, view.parents[0])
    return None
