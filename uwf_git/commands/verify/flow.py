"""Check the places of a flow: where a turn was taken, what its result changed, what was given up.

Format: FORMAT.md, "Positions" and "State of a flow".
"""

from collections.abc import Generator

from uwf_git.commands.split.plan import read_entry, read_flow
from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.engine.flow_move import find_given_up
from uwf_git.engine.flow_possible import is_possible
from uwf_git.engine.flow_state import fold_result
from uwf_git.errors import StoreDamaged
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.flow import Flow
from uwf_git.model.position import NotAPosition, Position, parse_position
from uwf_git.model.references import find_reference
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.threads.snapshot import Snapshot


def check_place(
    site: Location, before: Standing, cause: Cause, made: Snapshot
) -> Generator[Finding, None, Cause | None]:
    """Check the place of the turn that *made* records, after *before*.

    Returns:
        The cause, with what the place adds to it; None if it is wrong.
    """
    record = made.record
    try:
        flow = read_flow(made, parse_workflow(made.get_node(record.workflow)))
        entry = read_entry(made)
    except (StoreDamaged, NotAPosition):
        return None  # reported for the nodes
    if flow is None:
        if record.at is not None:
            yield site.finding(f"{record.event} has an Uwf-At, and the workflow is a graph")
            return None
        return cause
    try:
        at = parse_position(record.at or "")
    except NotAPosition:
        yield site.finding(f"Uwf-At is {record.at}, which is no position")
        return None
    problem = _find_problem(flow, entry, before, record, at)
    if problem is not None:
        yield site.finding(f"Uwf-At is {record.at}, {problem}")
        return None
    given_up = find_given_up(flow, at, entry=entry)
    cause = cause._replace(gives_up=None if given_up is None else str(given_up))
    if record.event in {"step", "answer"} and cause.node is not None:
        content = find_reference(cause.payload["content"])
        text = "" if content is None else str(made.get_node(content).payload)
        state = fold_result(
            before.state.state,
            meta=cause.payload["meta"],
            content=text,
            output=flow.nodes[at.place].output,
            patch=cause.payload.get("state"),
        )
        cause = cause._replace(state=state)
    return cause


def _find_problem(
    flow: Flow, entry: Position | None, before: Standing, record: TransitionRecord, at: Position
) -> str | None:
    node = flow.nodes.get(at.place)
    if node is None or node.kind != "agent":
        return "which is no place of an agent"
    if record.role is not None and node.agent != record.role:
        return f"which is the place of {node.agent}"
    if before.state.waiting is not None and before.state.waiting.at == record.at:
        # It was checked when it began to wait.
        return None
    return find_way_problem(flow, entry, before.state.at, at)


def find_way_problem(
    flow: Flow, entry: Position | None, last: str | None, at: Position
) -> str | None:
    """Return why no condition leads from *last* to *at*; None if one may."""
    try:
        previous = None if last is None else parse_position(last)
    except NotAPosition:
        return f"and now.json said {last}"
    if not is_possible(flow, previous, at, entry=entry):
        return f"where no condition leads from {last or 'the beginning'}"
    return None
