"""Check the places of a flow: where a turn was taken, what its result changed, what was given up.

Format: FORMAT.md, "Positions" and "State of a flow".
"""

from collections.abc import Generator, Iterator

from uwf_git.commands.split.plan import read_entry, read_flow
from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.engine.flow_move import find_given_up
from uwf_git.engine.flow_possible import is_possible
from uwf_git.engine.flow_tries import (
    describe_rejection,
    find_open_try,
    fold_turn,
    is_verdict_due,
)
from uwf_git.errors import StoreDamaged
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.flow import Flow
from uwf_git.model.position import NotAPosition, Position, parse_position
from uwf_git.model.references import find_reference
from uwf_git.model.thread import ThreadState
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.threads.definitions import get_workflow
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
        flow = read_flow(made, get_workflow(made, record.workflow))
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
        cause = _add_result((flow, at), before, cause, text)
    return cause


def check_end(site: Location, before: Standing, made: Snapshot) -> Iterator[Finding]:
    """Check that a thread that ends at *made* may have come to the end of its flow."""
    try:
        flow = read_flow(made, get_workflow(made, made.record.workflow))
        entry = read_entry(made)
    except (StoreDamaged, NotAPosition):
        return  # reported for the nodes
    if flow is None:
        return
    problem = find_way_problem(flow, entry, before.state, None)
    if problem is not None:
        yield site.finding(f"the thread ends, {problem}")


def _add_result(
    where: tuple[Flow, Position], before: Standing, cause: Cause, content: str
) -> Cause:
    """Return the *cause* of a step at a place with the state after it, and what it means for a try.

    What a verdict says is asked again as far as that is cheap; else it may be either.
    """
    flow, at = where
    node = flow.nodes[at.place]
    is_verdict = is_verdict_due(node, before.state.tried, str(at))
    state = fold_turn(node, before.state.state, cause.payload, content, is_verdict=is_verdict)
    cause = cause._replace(state=state)
    if node.verifier is None:
        return cause
    if not is_verdict:
        return cause._replace(verdict="due")
    from uwf_git.engine.verdict_check import judge_again  # noqa: PLC0415 (costs start-up time)

    rejection = describe_rejection(node.verifier, cause.payload["meta"])
    verdict = judge_again(flow, node, cause.payload["meta"])
    return cause._replace(verdict=verdict, rejection=rejection)


def _find_problem(
    flow: Flow, entry: Position | None, before: Standing, record: TransitionRecord, at: Position
) -> str | None:
    node = flow.nodes.get(at.place)
    if node is None or node.kind != "agent":
        return "which is no place of an agent"
    is_verdict = is_verdict_due(node, before.state.tried, record.at)
    role = node.verifier if is_verdict else node.agent
    if record.role is not None and role != record.role:
        return f"which is the place of {role}"
    if before.state.waiting is not None and before.state.waiting.at == record.at:
        # It was checked when it began to wait.
        return None
    return find_way_problem(flow, entry, before.state, at)


def find_way_problem(
    flow: Flow, entry: Position | None, before: ThreadState, at: Position | None
) -> str | None:
    """Return why no condition leads from where the thread stood to *at*; None if one may.

    None as *at* is the end of the thread.
    """
    last, tried = find_open_try(flow, before.tried, before.at, entry=entry)
    if tried is not None:
        return None if tried == at else f"and the try at {tried} was not over"
    try:
        previous = None if last is None else parse_position(last)
    except NotAPosition:
        return f"and now.json said {last}"
    if not is_possible(flow, previous, at, entry=entry):
        return f"where no condition leads from {last or 'the beginning'}"
    return None
