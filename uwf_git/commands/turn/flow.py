"""Flows at a turn: where a thread goes next, what its agent is given, what its result changes.

Rules: FORMAT.md, "Positions" and "State of flows".
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from uwf_git.commands.split.plan import Asked, Container, read_entry, read_flow
from uwf_git.engine.flow_move import Move, count_passes, find_given_up, next_move
from uwf_git.engine.flow_state import fold_result
from uwf_git.engine.flow_words import FlowWords
from uwf_git.errors import Refused
from uwf_git.model.flow import Flow, FlowNode, parent
from uwf_git.model.position import NotAPosition, Position, parse_position
from uwf_git.model.thread import ThreadState
from uwf_git.store.threads.definitions import get_role, get_workflow
from uwf_git.store.threads.snapshot import Snapshot

_JSONATA = "jsonata"
_OF_EXPRESSIONS = frozenset(
    {"condition-failed", "expression-failed", "fence-hit", "flow-value", "loop-exhausted"}
)


class FlowPlace(NamedTuple):
    """One agent of a flow, at the place of a turn."""

    flow: Flow
    at: Position
    entry: Position | None
    """Where the thread begins, if it is a branch."""

    @property
    def node(self) -> FlowNode:
        """The agent's node."""
        return self.flow.nodes[self.at.place]

    def fold(
        self, state: Mapping[str, Any], step: Mapping[str, Any], content: str
    ) -> dict[str, Any]:
        """Return the state after the *step* (its payload) of this agent, which said *content*."""
        return fold_result(
            state,
            meta=step["meta"],
            content=content,
            output=self.node.output,
            patch=step.get("state"),
        )

    def takes_anything(self, snapshot: Snapshot) -> bool:
        """Return whether the role of this agent asks for nothing, as one that no file describes."""
        workflow = get_workflow(snapshot, snapshot.record.workflow)
        role = get_role(snapshot, workflow.roles[self.node.agent])
        return snapshot.get_node(role.output_schema).payload is True

    @property
    def retries(self) -> int | None:
        """How often a failed try is repeated here; None: the agent's settings decide."""
        found = self._find("retries")
        if found is None and self._find("onError") == "retry":
            return 1
        return None if found is None else int(found)

    @property
    def timeout_s(self) -> float | None:
        """How long a try may take, in seconds; None: the agent's settings decide."""
        found = self._find("timeout")
        return None if found is None else float(found) / 1000

    def _find(self, field: str) -> Any:
        """Return a field of the node, or of the nearest container around it that has it."""
        place: str | None = self.at.place
        while place is not None:
            if field in self.flow.nodes[place].fields:
                return self.flow.nodes[place].fields[field]
            place = parent(place)
        return None

    def find_given_up(self) -> str | None:
        """Return the place that is given up if the agent fails for good; None: the thread fails."""
        place = find_given_up(self.flow, self.at, entry=self.entry)
        return None if place is None else str(place)


def find_place(snapshot: Snapshot, at: str) -> FlowPlace | None:
    """Return the agent at the place *at*; None in a graph, or if the flow has no agent there."""
    workflow = get_workflow(snapshot, snapshot.record.workflow)
    flow = read_flow(snapshot, workflow)
    try:
        position = parse_position(at)
    except NotAPosition:
        return None
    node = None if flow is None else flow.nodes.get(position.place)
    if flow is None or node is None or node.kind != "agent":
        return None
    return FlowPlace(flow, position, read_entry(snapshot))


def decide_flow(snapshot: Snapshot, present: ThreadState, flow: Flow) -> Move:
    """Return the next move of a thread that runs *flow*; if to an agent, its input can be filled.

    Raises:
        LoopExhausted, NoStop: the flow leads nowhere.
        BadFlowValue, ConditionFailed, ExpressionFailed, LimitHit: an expression has no fit value.
    """
    with _told_how_to_mend(snapshot):
        return _decide(snapshot, present, flow)


def _decide(snapshot: Snapshot, present: ThreadState, flow: Flow) -> Move:
    at = None if present.at is None else parse_position(present.at)
    entry = read_entry(snapshot)
    words = build_words(snapshot, present, flow, entry)

    def move() -> Move:
        found = next_move(flow, at, words, entry=entry)
        if found.kind == "agent" and found.at is not None and found.node is not None:
            # Before anybody is paid for a turn that cannot be begun.
            words.fill(found.node.fields.get("input"), count_passes(flow, found.at))
        return found

    if flow.language != _JSONATA:
        return move()
    told = evaluate_within_limits(flow, lambda: _text(move().at))
    if told is None:
        return Move("end", None, None)
    position = parse_position(told)
    node = flow.nodes[position.place]
    return Move("agent" if node.kind == "agent" else "split", position, node)


def _text(at: Position | None) -> str | None:
    return None if at is None else str(at)


@contextmanager
def _told_how_to_mend(snapshot: Snapshot) -> Iterator[None]:
    """Add to the error of an expression what changes its answer."""
    try:
        yield
    except Refused as error:
        if error.code not in _OF_EXPRESSIONS:
            raise
        thread = snapshot.record.thread
        mend = (
            f"`uwf thread patch {thread} JSON` changes the state that it reads, "
            f"`uwf thread amend {thread} --workflow FILE` the workflow"
        )
        error.hint = f"{error.hint}; {mend}" if error.hint else mend
        raise


def evaluate_within_limits(flow: Flow, work: Callable[[], Any]) -> Any:
    """Return the JSON that *work* returns; in a limited fork if the language has no limits."""
    if flow.language != _JSONATA:
        return work()
    from uwf_git.agents.limited_fork import run_limited  # noqa: PLC0415 (few flows are JSONata)

    return run_limited(work)


def build_words(
    snapshot: Snapshot, present: ThreadState, flow: Flow, entry: Position | None
) -> FlowWords:
    """Return what evaluates the expressions of *flow* for the thread."""
    return FlowWords(
        flow.language,
        state=present.state,
        prompt=snapshot.get_start().payload["prompt"],
        depth=present.depth,
        items=_name_items(flow, present.state, entry),
    )


def _name_items(flow: Flow, state: Mapping[str, Any], entry: Position | None) -> dict[str, Any]:
    """Return the items of the maps in which the thread runs, by their names in expressions."""
    names: dict[str, Any] = {}
    parts = () if entry is None else entry.parts
    for count in range(1, len(parts) + 1):
        node = flow.nodes.get(Position(parts[:count]).place)
        if node is not None and node.kind == "map":
            names[node.item] = state.get(node.item)
    return names


def fill_input(snapshot: Snapshot, present: ThreadState, place: FlowPlace) -> Any:
    """Return the input of an agent with its templates filled; None if it has none.

    Raises:
        ConditionFailed, LimitHit: a template cannot be filled.
    """
    template = place.node.fields.get("input")
    if template is None:
        return None
    return fill_template(snapshot, present, place, template)


def fill_template(snapshot: Snapshot, present: ThreadState, place: FlowPlace, template: Any) -> Any:
    """Return *template* filled as an input at *place* is.

    Raises:
        ConditionFailed, LimitHit: it cannot be filled.
    """
    words = build_words(snapshot, present, place.flow, place.entry)
    passes = count_passes(place.flow, place.at)
    with _told_how_to_mend(snapshot):
        return evaluate_within_limits(place.flow, lambda: words.fill(template, passes))


def ask_container(snapshot: Snapshot, present: ThreadState, container: Container) -> Asked:
    """Evaluate what *container* needs to split the thread.

    Raises:
        BadFlowValue, ConditionFailed, ExpressionFailed, LimitHit: an expression has no fit value.
    """
    with _told_how_to_mend(snapshot):
        return _ask(snapshot, present, container)


def _ask(snapshot: Snapshot, present: ThreadState, container: Container) -> Asked:
    prompt = str(snapshot.get_start().payload["prompt"])
    flow, node = container.flow, container.node
    if flow is None or node is None or container.kind == "parallel":
        return Asked(prompt=prompt)
    words = build_words(snapshot, present, flow, read_entry(snapshot))
    passes = count_passes(flow, parse_position(container.at))
    if container.kind == "map":
        return Asked(evaluate_within_limits(flow, lambda: words.list_items(node, passes)))
    given = node.fields.get("input")
    if given is None:
        return Asked(prompt=prompt)
    value = evaluate_within_limits(flow, lambda: words.fill(given, passes))
    if not isinstance(value, dict):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Asked(prompt=text)
    used = get_workflow(snapshot, container.used)
    text = json.dumps(value, ensure_ascii=False)
    return Asked(prompt=text, state={**(used.initial_state or {}), **value})
