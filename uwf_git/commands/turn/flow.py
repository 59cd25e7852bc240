"""Flows at a turn: where a thread goes next, what its agent is given, what its result changes.

Rules: FORMAT.md, "Positions" and "State of flows".
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from uwf_git.commands.split import Asked, Container, find_in_flow, read_entry
from uwf_git.engine.flow_move import (
    FlowWords,
    Move,
    count_passes,
    find_given_up,
    name_items,
    next_move,
)
from uwf_git.engine.flow_state import find_open_try, fold_turn, is_verdict_due, read_state
from uwf_git.errors import Refused
from uwf_git.model.event_folds import Verdict
from uwf_git.model.flow import Flow, FlowNode, Position, parent, parse_position
from uwf_git.model.thread import ThreadState
from uwf_git.store.threads.history import Snapshot, get_role, get_workflow

_JSONATA = "jsonata"
_OF_EXPRESSIONS = frozenset(
    {
        "condition-failed",
        "expression-failed",
        "fence-hit",
        "flow-goes-round",
        "flow-value",
        "loop-exhausted",
    }
)


class FlowPlace(NamedTuple):
    flow: Flow
    at: Position
    entry: Position | None
    """Where the thread begins, if it is a branch."""

    snapshot: Snapshot

    present: ThreadState

    @property
    def node(self) -> FlowNode:
        return self.flow.nodes[self.at.place]

    @property
    def is_verdict(self) -> bool:
        return is_verdict_due(self.node, self.present.tried, str(self.at))

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The templates of what its turn is told: its input and, for a verdict, the work's."""
        of_work = self.node.fields.get("input")
        return (self.node.verified_by.get("input"), of_work) if self.is_verdict else (of_work,)

    @property
    def input_files(self) -> tuple[str, ...]:
        asked = self.node.verified_by if self.is_verdict else self.node.fields
        return tuple(asked.get("inputFiles", ()))

    @property
    def role(self) -> str:
        """The role whose turn it is: of who does the work, or of who verifies it."""
        verifier = self.node.verifier if self.is_verdict else None
        return self.node.agent if verifier is None else verifier

    def fold(
        self, state: Mapping[str, Any], step: Mapping[str, Any], content: str
    ) -> dict[str, Any]:
        """Return the state after the *step* (its payload) of this agent, which said *content*."""
        return fold_turn(self.node, state, step, content, is_verdict=self.is_verdict)

    def judge(self, meta: Any) -> Verdict | None:
        """Return what a step with *meta* means for the try; None if nobody verifies the work."""
        if self.node.verifier is None:
            return None
        if not self.is_verdict:
            return "due"
        is_accepted = self.evaluate(lambda words: words.accepts(self.node, meta, *self._here))
        return "accepted" if is_accepted else "rejected"

    def takes_anything(self, snapshot: Snapshot) -> bool:
        """Return whether the role of this agent asks for nothing, as without a description."""
        workflow = get_workflow(snapshot, snapshot.record.workflow)
        role = get_role(snapshot, workflow.roles[self.role])
        return snapshot.get_node(role.output_schema).payload is True

    @property
    def retries(self) -> int | None:
        """How often a failed try is repeated here; None: the agent's settings decide."""
        found = self._find("retries", lambda words, node: words.count_retries(node, *self._here))
        policies = (node.fields.get("onError") for node in self._around)
        if found is None and next(filter(None, policies), None) == "retry":
            return 1
        return None if found is None else int(found)

    @property
    def timeout_s(self) -> float | None:
        """How long a try may take, in seconds; None: the agent's settings decide."""

        def read(words: FlowWords, node: FlowNode) -> float | None:
            return words.find_timeout_ms(node, node.fields.get("timeout"), *self._here)

        found = self.node.verified_by.get("timeout") if self.is_verdict else None
        if isinstance(found, str):
            own = found
            found = self.evaluate(lambda words: words.find_timeout_ms(self.node, own, *self._here))
        found = self._find("timeout", read) if found is None else found
        return None if found is None else float(found) / 1000

    @property
    def _here(self) -> tuple[int, Position]:
        return count_passes(self.flow, self.at), self.at

    @property
    def _around(self) -> Iterator[FlowNode]:
        place: str | None = self.at.place
        while place is not None:
            yield self.flow.nodes[place]
            place = parent(place)

    def _find(self, field: str, read: Callable[..., Any]) -> Any:
        """Return *field* of the nearest node around that has it; null counts as absent."""
        for node in self._around:
            found = node.fields.get(field)
            if isinstance(found, str):
                found = self.evaluate(partial(read, node=node))
            if found is not None:
                return found
        return None

    def evaluate(self, read: Callable[[FlowWords], Any]) -> Any:
        """Return what *read* makes of the words of the flow, within the limits of its language."""
        words = build_words(self.snapshot, self.present, self.flow, self.entry)
        return evaluate_within_limits(self.snapshot, self.flow, lambda: read(words))

    def find_given_up(self) -> str | None:
        """Return the place that is given up if the agent fails for good; None: the thread fails."""
        place = find_given_up(self.flow, self.at, entry=self.entry)
        return None if place is None else str(place)


def find_place(snapshot: Snapshot, at: str) -> FlowPlace | None:
    """Return the agent at the place *at*; None in a graph, or if the flow has no agent there."""
    found = find_in_flow(snapshot, at)
    if found is None:
        return None
    place = FlowPlace(*found, read_entry(snapshot), snapshot, snapshot.get_present())
    return place if place.node.kind == "agent" else None


def decide_flow(snapshot: Snapshot, present: ThreadState, flow: Flow) -> Move:
    """Return the next move of a thread that runs *flow*; an agent's input can be filled."""
    entry = read_entry(snapshot)
    last, tried = find_open_try(flow, present.tried, present.at, entry=entry)
    at = None if last is None else parse_position(last)
    words = build_words(snapshot, present, flow, entry)

    def move() -> Move:
        if tried is None:
            found = next_move(flow, at, words, entry=entry)
        else:
            found = Move("agent", tried, flow.nodes[tried.place])
        if found.kind == "agent" and found.at is not None:
            # Before anybody is paid for a turn that cannot be begun.
            place = FlowPlace(flow, found.at, entry, snapshot, present)
            for template in place.inputs:
                _fill(words, place, template)
        return found

    told = evaluate_within_limits(snapshot, flow, lambda: str(move().at or ""))
    if not told:
        return Move("end", None, None)
    position = parse_position(told)
    node = flow.nodes[position.place]
    return Move("agent" if node.kind == "agent" else "split", position, node)


def evaluate_within_limits(snapshot: Snapshot, flow: Flow, work: Callable[[], Any]) -> Any:
    """Return the JSON that *work* returns; in a limited fork if the language has no limits.

    The error of an expression tells what changes its answer.
    """
    try:
        if flow.language != _JSONATA:
            return work()
        from uwf_git.agents.limited_fork import run_limited  # noqa: PLC0415 (few flows are JSONata)

        return run_limited(work)
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


def build_words(
    snapshot: Snapshot, present: ThreadState, flow: Flow, entry: Position | None
) -> FlowWords:
    return FlowWords(
        flow.language,
        state=present.state,
        prompt=snapshot.get_start().payload["prompt"],
        depth=present.depth,
        items=name_items(flow, present.state, entry),
        flow=flow,
    )


def fill_input(snapshot: Snapshot, present: ThreadState, place: FlowPlace) -> Any:
    return fill_template(snapshot, present, place, place.inputs[0])


def fill_template(snapshot: Snapshot, present: ThreadState, place: FlowPlace, template: Any) -> Any:
    """Return *template* filled as an input at *place* is; None stays None."""
    if template is None:
        return None
    words = build_words(snapshot, present, place.flow, place.entry)
    return evaluate_within_limits(snapshot, place.flow, lambda: _fill(words, place, template))


def _fill(words: FlowWords, place: FlowPlace, template: Any) -> Any:
    """Return *template* filled: here alone, for who decides and for who is told."""
    return words.fill(template, count_passes(place.flow, place.at), place.at)


def read_state_at(snapshot: Snapshot, present: ThreadState, place: FlowPlace) -> dict[str, Any]:
    """Return the state as the agent at *place* reads it: with ``iteration`` and items of loops."""
    passes = count_passes(place.flow, place.at)
    if not any(node.has_items for node in place.flow.nodes.values()):
        return read_state(present.state, passes)
    words = build_words(snapshot, present, place.flow, place.entry)
    state = evaluate_within_limits(snapshot, place.flow, lambda: dict(words.inside(place.at).state))
    return read_state(state, passes)


def ask_container(snapshot: Snapshot, present: ThreadState, container: Container) -> Asked:
    prompt = str(snapshot.get_start().payload["prompt"])
    flow, node = container.flow, container.node
    if flow is None or node is None or container.kind == "parallel":
        return Asked(prompt=prompt)
    words = build_words(snapshot, present, flow, read_entry(snapshot))
    at = parse_position(container.at)
    passes = count_passes(flow, at)
    if container.kind == "map":
        items = evaluate_within_limits(snapshot, flow, lambda: words.list_items(node, passes, at))
        return Asked(items)
    given = node.fields.get("input")
    if given is None:
        return Asked(prompt=prompt)
    value = evaluate_within_limits(snapshot, flow, lambda: words.fill(given, passes, at))
    if not isinstance(value, dict):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Asked(prompt=text)
    used = get_workflow(snapshot, container.used)
    text = json.dumps(value, ensure_ascii=False)
    return Asked(prompt=text, state={**(used.initial_state or {}), **value})
