"""Deciding: whose turn it is in a thread.

Owns: putting the moderator's question behind the fence.
Knows nothing of: agents, recording. Always true: the same commit gives the same answer; a
condition that does not reach for the history does not load it.
"""

from collections.abc import Callable, Iterator

from uwf_git.agents.fence import run_fenced
from uwf_git.debug_log import debug
from uwf_git.engine.moderator import (
    Position,
    StepSummary,
    build_context,
    needs_conditions,
    next_role,
)
from uwf_git.errors import UwfError
from uwf_git.model.builtin import START as START_NODE
from uwf_git.model.node import Node
from uwf_git.model.thread import Present
from uwf_git.model.transition import Graph
from uwf_git.model.workflow import Workflow, parse_graph
from uwf_git.store.snapshot import Snapshot


def decide_next(snapshot: Snapshot, present: Present, workflow: Workflow) -> str:
    """Give the role whose turn it is, or ``$END``.

    Raises:
        NoTransition, UnknownPosition: the workflow does not say.
        ConditionFailed, FenceHit: a condition cannot be answered.
        MissingNode, DamagedNode: the head, or what decides, cannot be read.
    """
    # Whatever decides: a thread whose head cannot be read must not be carried on.
    head = snapshot.get_head_node()
    graph = parse_graph(snapshot.get_node(workflow.moderator))
    if not needs_conditions(graph, present.role):
        role = next_role(graph, present.role, _never_asked)
    else:
        role = _ask_conditions(graph, snapshot, present, head)
    debug("0TYDCYW5", "decided", thread=snapshot.record.thread, after=present.role, role=role)
    return role


def _ask_conditions(graph: Graph, snapshot: Snapshot, present: Present, head: Node) -> str:
    # JSONata costs 40 ms of start-up: only a step that asks a condition pays for it.
    from uwf_git.engine.expression import evaluate_condition  # noqa: PLC0415 - see above

    position = _position(snapshot, present, head)

    def ask(load_history: Callable[[], list[StepSummary]]) -> str:
        context = build_context(position, load_history)
        answer = run_fenced(
            lambda: next_role(graph, present.role, lambda text: evaluate_condition(text, context)),
            what=f"the decision after {present.role}",
        )
        return str(answer)

    try:
        return ask(_history_not_loaded)
    except UwfError as error:
        if error.code != HistoryNeeded.code:
            raise
    # Loaded outside the fence: its limits are for what a condition does, not for long threads.
    history = _history(snapshot)
    debug("PS45NV7E", "a condition wants the history", steps=len(history))
    return ask(lambda: history)


class HistoryNeeded(UwfError):
    """A condition reached for the history: said from behind the fence, and never told."""

    code = "history-needed"


def _history_not_loaded() -> list[StepSummary]:
    raise HistoryNeeded("a condition reaches for the history")


def _never_asked(_condition: str) -> bool:
    raise AssertionError("the first transition is unconditional")


def _position(snapshot: Snapshot, present: Present, head: Node) -> Position:
    start = snapshot.get_start()
    return Position(
        role=present.role,
        meta={} if head.type == START_NODE else head.payload["meta"],
        depth=present.depth,
        state=present.state,
        prompt=start.payload["prompt"],
        iteration=present.visits.get(present.role, 0),
        start_time_ms=present.started_at,
    )


def _history(snapshot: Snapshot) -> list[StepSummary]:
    """Load the steps before the newest, oldest first."""
    steps = _earlier_steps(snapshot)
    history = [StepSummary(step.payload["role"], step.payload["meta"]) for step in steps]
    history.reverse()
    return history


def _earlier_steps(snapshot: Snapshot) -> Iterator[Node]:
    chain = snapshot.walk_chain()
    next(chain)
    for node in chain:
        if "prev" in node.payload:
            yield node
