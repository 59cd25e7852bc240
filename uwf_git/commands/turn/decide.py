"""Decide whose turn it is: run the moderator; conditions that are not plain in a limited fork.

The same commit gives the same answer. Only the steps are read that a condition looks at.
"""

from typing import TYPE_CHECKING, NamedTuple

from uwf_git.debug_log import debug
from uwf_git.engine.lazy_list import LazyList, lazy_list
from uwf_git.engine.moderator import (
    NotPlain,
    Position,
    StepSummary,
    build_context,
    next_role,
    plainly_holds,
)
from uwf_git.errors import Refused, UwfError
from uwf_git.model.builtin import START as START_NODE
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import END, Graph, Workflow
from uwf_git.store.threads.definitions import get_flow, get_graph, get_role
from uwf_git.store.threads.history import StepChain
from uwf_git.store.threads.snapshot import Snapshot

if TYPE_CHECKING:
    from uwf_git.commands.turn.flow import FlowPlace


class NextTurn(NamedTuple):
    role: str
    """A role of the workflow, or ``$END``."""

    at: str | None = None
    """The place of the turn; None in a graph, but for a role that splits it."""

    splits: bool = False
    """The thread goes on in branches: *role* is the label of what splits it."""


def decide_next(snapshot: Snapshot, present: ThreadState, workflow: Workflow) -> NextTurn:
    # Read the head even if no condition needs it: a damaged thread must not go on.
    head = snapshot.get_head_node()
    if workflow.flow is not None:
        return _decide_flow(snapshot, present, workflow.flow)
    graph = get_graph(snapshot, workflow.get_moderator())
    try:
        try:
            role = _ask_plainly(graph, snapshot, present, head)
        except NotPlain:
            role = _ask_conditions(graph, snapshot, present, head)
    except Refused as error:
        # A thread keeps its workflow, so putting the file again does not help it.
        thread = snapshot.record.thread
        amend = f"`uwf thread amend {thread} --workflow FILE` continues with the corrected file"
        error.hint = f"{error.hint}; {amend}" if error.hint else amend
        raise
    debug("0TYDCYW5", "decided", thread=snapshot.record.thread, after=present.role, role=role)
    splits = role != END and get_role(snapshot, workflow.roles[role]).workflow is not None
    return NextTurn(role, role if splits else None, splits)


def find_turn_place(snapshot: Snapshot, at: str | None) -> "FlowPlace | None":
    """Return the agent's place *at* in the flow of a thread; None in a graph, or if it is gone."""
    if at is None:
        return None
    from uwf_git.commands.turn.flow import find_place  # noqa: PLC0415 (graphs do not need it)

    return find_place(snapshot, at)


def _decide_flow(snapshot: Snapshot, present: ThreadState, name: NodeHash) -> NextTurn:
    from uwf_git.commands.turn.flow import decide_flow  # noqa: PLC0415 (graphs do not need it)
    from uwf_git.engine.flow_state import is_verdict_due  # noqa: PLC0415 (graphs do not need it)

    move = decide_flow(snapshot, present, get_flow(snapshot, name))
    debug(
        "4N2W0SHC", "place decided", thread=snapshot.record.thread, at=present.at, next=str(move.at)
    )
    if move.node is None:
        return NextTurn(END)
    if move.kind == "split":
        return NextTurn(move.node.label, str(move.at), splits=True)
    is_verdict = is_verdict_due(move.node, present.tried, str(move.at))
    role = move.node.verifier if is_verdict else None
    return NextTurn(move.node.agent if role is None else role, str(move.at))


def _ask_plainly(graph: Graph, snapshot: Snapshot, present: ThreadState, head: Node) -> str:
    def holds(condition: str) -> bool:
        # Made for each condition: most positions ask none or one.
        position = _position(snapshot, present, head)
        context = build_context(position, lambda: _build_history(present.depth - 1, []))
        return plainly_holds(condition, context)

    return next_role(graph, present.role, holds)


def _ask_conditions(graph: Graph, snapshot: Snapshot, present: ThreadState, head: Node) -> str:
    # JSONata costs 40 ms of start-up and a fork 6 ms: only for what is not plain.
    from uwf_git.agents.limited_fork import run_limited  # noqa: PLC0415 - see above
    from uwf_git.engine.expression import evaluate_condition  # noqa: PLC0415 - see above

    position = _position(snapshot, present, head)

    def ask(known: list[StepSummary]) -> str:
        context = build_context(position, lambda: _build_history(present.depth - 1, known))
        answer = run_limited(
            lambda: next_role(graph, present.role, lambda text: evaluate_condition(text, context)),
            what=f"the decision after {present.role}",
        )
        return str(answer)

    # Read outside the fork: its limits are for the condition, not for a long history.
    chain, known = StepChain(snapshot), list[StepSummary]()
    while True:
        try:
            return ask(known)
        except UwfError as error:
            if error.code != HistoryNeeded.code:
                raise
            needed = error.facts["newest"]
        # Twice as many as before, at least: each time costs a fork.
        wanted = min(max(needed, 2 * len(known)), present.depth - 1)
        debug("PS45NV7E", "a condition reads the history", steps=wanted)
        for back in range(len(known) + 1, wanted + 1):
            step = chain.get(present.depth - 1 - back).payload
            known.append(StepSummary(step["role"], step["meta"]))


class HistoryNeeded(UwfError):
    """A condition reads the history: raised in the limited fork, never shown."""

    code = "history-needed"


def _build_history(length: int, known: list[StepSummary]) -> LazyList[StepSummary]:
    """Return the steps before the newest, oldest first; *known* are the newest of them."""

    def read(place: int) -> StepSummary:
        back = length - place
        if back > len(known):
            raise HistoryNeeded("a condition reads the history", newest=back)
        return known[back - 1]

    return lazy_list(length, read)


def _position(snapshot: Snapshot, present: ThreadState, head: Node) -> Position:
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
