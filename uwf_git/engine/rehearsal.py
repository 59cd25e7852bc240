"""Rehearsals: a workflow gone through without agents, to see whether and where it ends.

Each role says what a player says for it, by default the least that its schema allows. Another
workflow that a node runs is not gone through: it says nothing. Joins and moves are the real ones.
Conditions are evaluated here: call it within limits (agents/limited_fork.py).
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from uwf_git.engine.expression import evaluate_condition
from uwf_git.engine.flow_merge import Join, Side, merge_map, merge_parallel
from uwf_git.engine.flow_move import LoopExhausted, count_passes, next_move
from uwf_git.engine.flow_state import fold_result, result_value
from uwf_git.engine.flow_words import FlowWords
from uwf_git.engine.least_value import list_least
from uwf_git.engine.moderator import Position as GraphPosition
from uwf_git.engine.moderator import StepSummary, build_context, next_role
from uwf_git.errors import UwfError
from uwf_git.model.definition.definition import Definition
from uwf_git.model.flow import Flow, FlowNode
from uwf_git.model.position import Position
from uwf_git.model.schema_check import check_value
from uwf_git.model.transition import END, START

MOST_TURNS = 300
"""More than a run should take without a person, and quickly gone through."""

_SHOWN_ROUND = 6

Play = Callable[[str], Any]
"""From a role to the meta of its turn."""


class Rehearsal(NamedTuple):
    """How a rehearsal went."""

    roles: tuple[str, ...]
    """The roles that acted, those of branches one branch after another."""

    problem: str | None = None
    """Why it did not come to its end."""

    at: str | None = None
    """Where the problem is: a role of a graph, a place of a flow."""


class NothingFits(ValueError):
    """No value was found that fits the schema of a role."""


class _Stuck(Exception):
    """The rehearsal ends before its end."""

    def __init__(self, problem: str, at: str | None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at


def find_least(schema: Any) -> Any:
    """Return the least value that fits *schema*.

    Raises:
        NothingFits: none was found.
    """
    for value in list_least(schema):
        if not check_value(schema, value):
            return value
    raise NothingFits


def rehearse(definition: Definition, prompt: str, play: Play | None = None) -> Rehearsal:
    """Go through the workflow *definition*, with the task *prompt*."""
    run = _Run(definition, prompt, play)
    try:
        if definition.flow is None:
            run.go_through_graph()
        else:
            nodes = {
                place: FlowNode(
                    place, fields["type"], {k: fields[k] for k in fields if k != "type"}
                )
                for place, fields in definition.flow.nodes.items()
            }
            flow = Flow(nodes, definition.flow.language or "javascript")
            run.go_through_flow(flow, dict(definition.initial_state or {}))
    except _Stuck as stuck:
        return Rehearsal(tuple(run.roles), stuck.problem, stuck.at)
    return Rehearsal(tuple(run.roles))


class _Branch(NamedTuple):
    """A thread of a flow."""

    flow: Flow
    entry: Position | None = None
    items: Mapping[str, Any] = {}


class _Here(NamedTuple):
    """Where a thread of a flow stops for work."""

    at: Position
    node: FlowNode
    words: FlowWords
    passes: int


class _Run:
    def __init__(self, definition: Definition, prompt: str, play: Play | None) -> None:
        self.roles: list[str] = []
        self._definition = definition
        self._prompt = prompt
        self._play = play
        self._least: dict[str, Any] = {}

    def go_through_graph(self) -> None:
        steps: list[StepSummary] = []
        while (to := self._role_after(steps)) != END:
            steps.append(StepSummary(to, self._turn(to, to)))

    def _role_after(self, steps: list[StepSummary]) -> str:
        last = steps[-1] if steps else StepSummary(START, {})
        state = self._definition.initial_state or {}
        visits = sum(step.role == last.role for step in steps)
        position = GraphPosition(last.role, last.meta, len(steps), state, self._prompt, visits, 0)
        context = build_context(position, lambda: steps[:-1])

        def holds(condition: str) -> bool:
            return evaluate_condition(condition, context)

        try:
            return next_role(self._definition.graph, last.role, holds)
        except UwfError as error:
            raise _Stuck(f"after {last.role}: {error.message}", last.role) from None

    def go_through_flow(self, flow: Flow, state: dict[str, Any]) -> None:
        self._go_on(_Branch(flow), state)

    def _go_on(self, branch: _Branch, state: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Go on to the end of a thread; return its state, and the result of its newest step."""
        at: Position | None = None
        result: Any = None
        while True:
            words = self._words(branch, state)
            try:
                move = next_move(branch.flow, at, words, entry=branch.entry)
            except LoopExhausted:
                # That is an end too: a person goes on from there.
                return state, result
            except UwfError as error:
                raise _Stuck(error.message, None if at is None else at.place) from None
            if move.node is None or move.at is None:
                return state, result
            at = move.at
            passes = count_passes(branch.flow, at)
            try:
                here = _Here(at, move.node, words.inside(at), passes)
                state, result = self._do(branch, state, here)
            except UwfError as error:
                raise _Stuck(error.message, at.place) from None

    def _do(
        self, branch: _Branch, state: dict[str, Any], here: _Here
    ) -> tuple[dict[str, Any], Any]:
        node = here.node
        if node.kind not in ("agent", "workflow"):
            return self._split(branch, state, here), None
        here.words.fill_here(node.fields.get("input"), here.passes)
        meta = self._turn(node.agent, here.at.place) if node.kind == "agent" else {}
        if node.verified_by:
            # Rejections are bounded by the engine, and end with a person; what follows is gone
            # through as if the work were accepted.
            self._turn(str(node.verified_by["agentId"]), here.at.place)
        folded = fold_result(state, meta=meta, content="", output=node.output)
        return folded, result_value(meta, "")

    def _split(self, branch: _Branch, state: dict[str, Any], here: _Here) -> dict[str, Any]:
        node = here.node
        results: list[Any] = []
        sides: list[Side] = []
        for number, (entry, own) in enumerate(_list_branches(branch.flow, here)):
            items = {key: own[key] for key in own if key == node.item}
            side = branch._replace(entry=entry, items={**branch.items, **items})
            ended, result = self._go_on(side, {**state, **own})
            sides.append(Side(number, node.label, ended))
            results.append(result)
        join = Join(state, state, sides)
        merged = (
            merge_map(join, node, results) if node.kind == "map" else merge_parallel(join, node)
        )
        if merged.conflicts:
            keys = ", ".join(".".join(each.path) for each in merged.conflicts)
            problem = f"its branches disagree about {keys}; say with `merge` which one counts"
            raise _Stuck(problem, here.at.place)
        return merged.state

    def _words(self, branch: _Branch, state: dict[str, Any]) -> FlowWords:
        return FlowWords(
            branch.flow.language, state, self._prompt, len(self.roles), branch.items, branch.flow
        )

    def _turn(self, role: str, at: str) -> Any:
        """Return what *role* says in a turn."""
        if len(self.roles) == MOST_TURNS:
            raise _Stuck(f"no end after {MOST_TURNS} turns: it goes round, {self._round()}", at)
        self.roles.append(role)
        if self._play is not None:
            return self._play(role)
        if role not in self._least:
            try:
                self._least[role] = find_least(self._definition.roles[role].output_schema)
            except NothingFits:
                raise _Stuck(
                    f"no answer was found that fits the schema of {role}; make it simpler", at
                ) from None
        return self._least[role]

    def _round(self) -> str:
        """Describe the shortest round that the newest turns repeat."""
        newest = self.roles[::-1]
        for length in range(1, MOST_TURNS // 3):
            if newest[:length] == newest[length : 2 * length] == newest[2 * length : 3 * length]:
                seen = [*reversed(newest[:length])]
                # Begin with the role that acted first of them.
                first = seen.index(next(role for role in self.roles if role in seen))
                told = [*seen[first:], *seen[:first], seen[first]]
                return " → ".join(islice(told, _SHOWN_ROUND)) + (
                    " → …" if len(told) > _SHOWN_ROUND else ""
                )
        return " → ".join(reversed(newest[:_SHOWN_ROUND]))


def _list_branches(flow: Flow, here: _Here) -> list[tuple[Position, dict[str, Any]]]:
    """List where the branches of a split begin, each with the members that its state has more."""
    node, at = here.node, here.at
    if node.kind == "parallel":
        return [(at.child(number), {}) for number in range(len(flow.children(node.place)))]
    return [
        (at.in_turn(number), {node.item: item, f"{node.item}Index": number})
        for number, item in enumerate(here.words.list_here(node, here.passes))
    ]
