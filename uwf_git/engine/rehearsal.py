"""Rehearsals: a workflow gone through without agents, with the least that they can say."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from uwf_git.engine import flow_state
from uwf_git.engine.flow_move import FlowWords, LoopExhausted, count_passes, next_move
from uwf_git.engine.javascript.evaluator import parse_template
from uwf_git.engine.javascript.parser import (
    Access,
    Constant,
    Expression,
    Member,
    Name,
    Node,
    children,
    parse_expression,
)
from uwf_git.engine.javascript.values import ExpressionFailed, from_units
from uwf_git.engine.moderator import Position as GraphPosition
from uwf_git.engine.moderator import StepSummary, build_context, expression, next_role
from uwf_git.errors import UwfError
from uwf_git.model.builtin import follow_reference
from uwf_git.model.definition.definition import FLOW_NAMES, Definition, FlowText
from uwf_git.model.flow import Flow, FlowNode, Position, read_table
from uwf_git.model.plain_schema import schema_check
from uwf_git.model.workflow import END, START

# The least value that fits a JSON Schema: what an agent says that says as little as it may.
#
# No value is made for every schema. Whoever needs a fitting one checks it.

# A schema may contain itself.
_DEEPEST = 8
# Below it, an object without what is required is not tried with all that it may have.
_DEEPEST_REST = 2

# null comes last: where a schema allows it and more, a workflow expects more.
_TYPES = ("boolean", "integer", "number", "string", "array", "object", "null")

# Texts for patterns, formats and lists without a repetition, the emptiest first.
_TEXTS = (
    *("a", "A", "0", "1", "a1", "aa", "aaa", "a-b", "a_b", "a.b", "a/b", "0.0.0", "1.0.0", "#1"),
    *("A-1", "a.md", "000-a.md", "2000-01-01", "00:00:00Z", "2000-01-01T00:00:00Z"),
    *("a@example.com", "https://example.com/", "0000000", "0" * 40),
)

_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


class LeastValues:
    """Makes values that may fit a schema, the least first: no text, no item, no free field."""

    def __init__(self, root: Any, check: Callable[..., object]) -> None:
        self._root, self._check = root, check

    def make(self, schema: Any, depth: int) -> Iterator[Any]:
        schema = self._resolve(schema)
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            yield {}
            return
        fixed = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(fixed, list):
            yield from fixed
            return
        merged = dict(schema)
        for part in schema.get("allOf", ()):
            merged = _united(merged, self._resolve(part))
        for keyword in ("anyOf", "oneOf"):
            for part in schema.get(keyword, ()):
                whole = _united({**merged, keyword: ()}, self._resolve(part))
                yield from self.make({**whole, "allOf": ()}, depth)
        kinds = merged.get("type")
        if kinds is None:
            is_array = merged.keys() & {"items", "minItems", "prefixItems"}
            kinds = "array" if is_array else "object"
        named = [kinds] if isinstance(kinds, str) else kinds
        for kind in _TYPES:
            if kind in named:
                yield from self._of_kind(kind, merged, depth)

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        if kind == "object":
            yield from self._objects(schema, depth)
        elif kind == "array":
            yield self._array(schema, depth)
        elif kind == "string":
            yield "a" * min(int(schema.get("minLength", 0)), 1_000)
            yield from _TEXTS
        elif kind in ("integer", "number"):
            yield from _numbers(schema, is_whole=kind == "integer")
        else:
            yield from {"boolean": (False, True), "null": (None,)}[kind]

    def _objects(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        properties = schema.get("properties", {})
        least = {
            name: self._first(properties.get(name, True), depth + 1)
            for name in schema.get("required", ())
        }
        yield least
        if depth < _DEEPEST_REST:
            # minProperties, dependencies and the like ask for more.
            rest = {name: self._first(part, depth + 1) for name, part in properties.items()}
            yield {**rest, **least}

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        prefix = list(schema.get("prefixItems", ()))
        count = min(int(schema.get("minItems", 0)), 100)
        items: list[Any] = []
        for part in [*prefix, *[schema.get("items", True)] * count][:count]:
            others = items if schema.get("uniqueItems") else ()
            items.append(self._first(part, depth + 1, others))
        return items

    def _first(self, schema: Any, depth: int, others: Sequence[Any] = ()) -> Any:
        """Return the first value that fits *schema* and is none of *others*; None: none does."""
        values = (value for value in self.make(schema, depth) if value not in others)
        fitting = (value for value in values if not self._check(schema, value, root=self._root))
        return next(fitting, None)

    def _resolve(self, schema: Any) -> Any:
        for _ in range(_DEEPEST):
            target = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(target, str):
                return schema
            found = follow_reference(self._root, target)
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            schema = _united(rest, found) if rest else found
        return True


def _numbers(schema: Mapping[str, Any], *, is_whole: bool) -> Iterator[float]:
    yield 0
    step = schema.get("multipleOf", 1)
    bounds = [schema[keyword] for keyword in _BOUNDS if keyword in schema]
    for bound in bounds:
        # A product: whole numbers stay whole, however large.
        yield from ((bound // step + more) * step for more in (0, 1, -1))
    if bounds and not is_whole:
        yield sum(bounds) / len(bounds)


def _united(one: Any, other: Any) -> dict[str, Any]:
    """Return a schema that asks for what both ask, as far as plain keywords tell."""
    united = dict(one) if isinstance(one, Mapping) else {}
    for key, value in (other if isinstance(other, Mapping) else {}).items():
        if key == "required":
            united[key] = list(dict.fromkeys([*united.get(key, ()), *value]))
        elif key == "properties":
            united[key] = {**united.get(key, {}), **value}
        else:
            united[key] = value
    return united


# Rehearsals: a workflow gone through without agents, to see whether and where it ends.
#
# Each role says the least that its schema allows. Another workflow that a node runs is not gone
# through: it says nothing. Joins and moves are the real ones. Conditions are evaluated here: call
# it within limits (agents/limited_fork.py).

MOST_TURNS = 300
"""More than a run should take without a person, and quickly gone through."""

_SHOWN_ROUND = 6


class Rehearsal(NamedTuple):
    roles: tuple[str, ...]
    """The roles that acted; the roles of branches one branch after another."""

    problem: str | None = None
    """Why it did not come to its end."""

    at: str | None = None
    """Where the problem is: a role of a graph, a place of a flow."""


class _Stuck(Exception):
    """The rehearsal ends before its end; *args* are the problem, and where it is or None."""


def find_least(schema: Any) -> Any:
    """Return the least value that fits *schema*, or raise ValueError."""
    check_value = schema_check.check_value
    for value in LeastValues(schema, check_value).make(schema, 0):
        if not check_value(schema, value):
            return value
    raise ValueError("no value was found that fits")


def rehearse(definition: Definition, prompt: str) -> Rehearsal:
    """Go through the workflow *definition*, with the task *prompt*."""
    run = _Run(definition, prompt)
    try:
        if definition.flow is None:
            run.go_through_graph()
        else:
            flow = Flow(read_table(definition.flow.nodes), definition.flow.language or "javascript")
            run.go_through_flow(_Branch(flow), dict(definition.initial_state or {}))
    except _Stuck as stuck:
        return Rehearsal(tuple(run.roles), *stuck.args)
    return Rehearsal(tuple(run.roles))


class _Branch(NamedTuple):
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
    def __init__(self, definition: Definition, prompt: str) -> None:
        self.roles: list[str] = []
        self._definition = definition
        self._prompt = prompt
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
            return bool(expression.evaluate_condition(condition, context))

        try:
            return next_role(self._definition.graph, last.role, holds)
        except UwfError as error:
            raise _Stuck(f"after {last.role}: {error.message}", last.role) from None

    def go_through_flow(self, branch: _Branch, state: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Go on to the end of a thread; return its state, and its result."""
        flow, entry, items = branch
        at: Position | None = None
        begun, result = state, None
        while True:
            depth = len(self.roles)
            words = FlowWords(flow.language, state, self._prompt, depth, items, flow)
            try:
                move = next_move(flow, at, words, entry=entry)
                if move.node is None or move.at is None:
                    return state, result
                at = move.at
                here = _Here(at, move.node, words.inside(at), count_passes(flow, at))
                state, result = self._do(branch, state, here)
                if move.kind == "split" and move.node.kind != "workflow":
                    result = flow_state.pick_changes(begun, state, result)
            except LoopExhausted:
                # That is an end too: a person goes on from there.
                return state, result
            except UwfError as error:
                raise _Stuck(error.message, None if at is None else at.place) from None

    def _do(
        self, branch: _Branch, state: dict[str, Any], here: _Here
    ) -> tuple[dict[str, Any], Any]:
        node = here.node
        if node.kind not in ("agent", "workflow"):
            return self._split(branch, state, here)
        here.words.fill_here(node.fields.get("input"), here.passes)
        meta = self._turn(node.agent, here.at.place) if node.kind == "agent" else {}
        if node.verified_by:
            # Rejections are bounded by the engine, and end with a person; what follows is gone
            # through as if the work were accepted.
            self._turn(str(node.verified_by["agentId"]), here.at.place)
        folded = flow_state.fold_result(state, meta=meta, content="", output=node.output)
        return folded, flow_state.result_value(meta, "")

    def _split(
        self, branch: _Branch, state: dict[str, Any], here: _Here
    ) -> tuple[dict[str, Any], set[str | None]]:
        """Go through the branches; return the state after the join, and the keys they answered."""
        node = here.node
        results: list[Any] = []
        sides: list[flow_state.Side] = []
        for number, (entry, own) in enumerate(_list_branches(branch.flow, here)):
            items = {key: own[key] for key in own if key == node.item}
            side = branch._replace(entry=entry, items={**branch.items, **items})
            ended, result = self.go_through_flow(side, {**state, **own})
            sides.append(flow_state.Side(number, node.label, ended))
            results.append(result)
        join = flow_state.Join(state, state, sides)
        said: set[str | None] = {node.output}
        if node.kind == "map":
            merged = flow_state.merge_map(join, node, results)
        else:
            merged = flow_state.merge_parallel(join, node)
            said = {key for each in results if isinstance(each, dict) for key in each}
        if merged.conflicts:
            keys = ", ".join(".".join(each.path) for each in merged.conflicts)
            problem = f"its branches disagree about {keys}; say with `merge` which one counts"
            raise _Stuck(problem, here.at.place)
        return merged.state, said

    def _turn(self, role: str, at: str) -> Any:
        if len(self.roles) == MOST_TURNS:
            raise _Stuck(f"no end after {MOST_TURNS} turns: it goes round, {self._round()}", at)
        self.roles.append(role)
        if role not in self._least:
            try:
                self._least[role] = find_least(self._definition.roles[role].output_schema)
            except ValueError:
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


# Check the texts of a flow: its conditions, ``over``, and the templates of inputs and bounds.


def check_flow_text(text: FlowText) -> str | None:
    """Return what is wrong with *text*, as far as no state is needed to know; None: nothing."""
    is_expression = text.kind == "expression"
    try:
        if text.language == "jsonata" and is_expression:
            problem: str | None = expression.check_condition(text.text)
            return problem
        if text.language == "jsonata":
            expression.split_template(text.text)
        else:
            parse = parse_expression if is_expression else parse_template
            parse(text.text, (*FLOW_NAMES, *text.names))
    except ValueError as error:
        return str(error)
    except ExpressionFailed as error:
        where = "" if error.position is None else f" (at character {error.position})"
        return f"{error.problem}{where}"
    return None


def list_reads(text: FlowText) -> list[list[str]]:
    """List the names that *text*, which is right, reads, each with the member that it reads of it.

    In JavaScript only the members of ``state`` and of the text's own names count: the parser knows
    the names.
    """
    is_expression = text.kind == "expression"
    if text.language == "jsonata":
        sources = [text.text]
        if not is_expression:
            pieces = expression.split_template(text.text)
            sources = [each.text for each in pieces if each.is_expression]
        return [found for source in sources for found in expression.list_paths(source)]
    parts = [parse_expression(text.text)] if is_expression else parse_template(text.text).parts
    found: list[list[str]] = []
    waiting: list[Node] = [part.root for part in parts if isinstance(part, Expression)]
    while waiting:
        node = waiting.pop()
        waiting.extend(children(node))
        if not (isinstance(node, Access) and isinstance(node.target, Name)):
            continue
        if node.target.name in ("state", *text.names):
            link = node.links[0]
            key = link.key if isinstance(link, Member) else None
            if isinstance(key, Constant) and isinstance(key.value, str):
                found.append([node.target.name, from_units(key.value)])
    return found
