"""Rehearsals: a workflow gone through without agents, with the least that they can say."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from uwf_git.engine import flow_move, flow_state
from uwf_git.engine.flow_move import FlowWords
from uwf_git.engine.flow_state import Join, Result, Side
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
from uwf_git.model.flow import Flow, Position
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node as StoreNode
from uwf_git.model.plain_schema import schema_check
from uwf_git.model.workflow import (
    END,
    START,
    Workflow,
    build_workflow,
    parse_flow_node,
    parse_graph,
    parse_role,
    parse_workflow,
)

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
# Each role says the least that its schema allows; all else is as the engine does it, in used
# workflows too. Conditions are evaluated here: call it within limits (agents/limited_fork.py).

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
    node, closure = build_workflow(definition, timestamp=0)
    run = _Run({each.hash: each for each in (node, *closure)})
    try:
        run.go_through(node.hash, prompt)
    except _Stuck as stuck:
        return Rehearsal(tuple(run.roles), *stuck.args)
    return Rehearsal(tuple(run.roles))


_State = Mapping[str, Any]
_End = tuple[_State, Result]
"""The state of a thread at its end, and its result."""


class _Thread(NamedTuple):
    workflow: Workflow
    flow: Flow
    prompt: str
    entry: Position | None = None


class _Run:
    def __init__(self, nodes: Mapping[NodeHash, StoreNode]) -> None:
        self.roles: list[str] = []
        self._nodes = nodes
        self._least: dict[NodeHash, Any] = {}

    def go_through(self, name: NodeHash, prompt: str, given: _State | None = None) -> Result:
        """Go through a workflow, whose state begins with what is *given* too; return its result."""
        workflow = parse_workflow(self._nodes[name])
        state = {**(workflow.initial_state or {}), **(given or {})}
        if workflow.flow is None:
            return self._go_through_graph(workflow, prompt, state)
        flow = parse_flow_node(self._nodes[workflow.flow])
        return self._go_through_flow(_Thread(workflow, flow, prompt), state)[1]

    def _go_through_graph(self, workflow: Workflow, prompt: str, state: dict[str, Any]) -> Result:
        graph = parse_graph(self._nodes[workflow.get_moderator()])
        steps: list[StepSummary] = []
        while True:
            last = steps[-1] if steps else StepSummary(START, {})
            visits = sum(step.role == last.role for step in steps)
            position = GraphPosition(last.role, last.meta, len(steps), state, prompt, visits, 0)
            context = build_context(position, lambda: steps[:-1])
            holds = partial(expression.evaluate_condition, context=context)
            try:
                role = next_role(graph, last.role, holds)
            except UwfError as error:
                raise _Stuck(f"after {last.role}: {error.message}", last.role) from None
            if role == END:
                return (last.meta if steps else None), ""
            steps.append(StepSummary(role, self._turn(workflow, role, role, prompt)))

    def _use(self, at: str, name: NodeHash, prompt: str, given: _State | None = None) -> Result:
        try:
            return self.go_through(name, prompt, given)
        except _Stuck as stuck:
            where = self._nodes[name].payload["name"]
            raise _Stuck(f"in workflow {where}: {stuck.args[0]}", at) from None

    def _go_through_flow(self, thread: _Thread, state: _State) -> _End:
        workflow, flow, prompt, entry = thread
        begun, result, depth = state, (None, ""), -1
        at: Position | None = None
        due: flow_move.Move | None = None  # the work that waits for its verdict
        while True:
            depth += 1
            items = flow_move.name_items(flow, state, entry)
            words = FlowWords(flow.language, state, prompt, depth, items, flow)
            try:
                move = due or flow_move.next_move(flow, at, words, entry=entry)
                if move.node is None or move.at is None:
                    return state, result
                at, node, is_verdict = move.at, move.node, due is not None
                if node.kind != "agent":
                    state, result = self._split(thread, words, at, begun)
                    continue
                here = (flow_move.count_passes(flow, at), at)
                for template in node.list_inputs(is_verdict=is_verdict):
                    words.fill(template, *here)
                role = node.find_role(is_verdict=is_verdict)
                meta = self._turn(workflow, role, at.place, prompt)
                if is_verdict:
                    # Rejections are bounded by the engine, and end with a person; what follows is
                    # gone through as if the work were accepted.
                    words.accepts(node, meta, *here)
                else:
                    result = (meta, "")
                state = flow_state.fold_turn(node, state, {"meta": meta}, "", is_verdict=is_verdict)
                due = None if is_verdict or node.verifier is None else move
            except flow_move.LoopExhausted:
                # That is an end too: a person goes on from there.
                return state, result
            except UwfError as error:
                raise _Stuck(error.message, None if at is None else at.place) from None

    def _split(self, thread: _Thread, words: FlowWords, at: Position, begun: _State) -> _End:
        """Go through the branches; return how the thread would end after the join."""
        flow, state = thread.flow, words.state
        node, here = flow.nodes[at.place], (flow_move.count_passes(flow, at), at)
        if node.workflow is not None:
            asked = words.ask_workflow(node, *here)
            ends: list[_End] = [({}, self._use(at.place, node.workflow, *asked))]
        else:
            items = words.list_items(node, *here) if node.kind == "map" else ()
            ends = [
                self._go_through_flow(thread._replace(entry=entry), {**state, **own})
                for entry, own in flow_state.list_entries(flow, at, items)
            ]
        counting = flow_state.find_counting(node.fields, dict.fromkeys(range(len(ends)), 0))
        join = Join(state, state, [Side(n, node.label, ends[n][0]) for n in counting])
        merged = flow_state.join_branches(join, node, len(ends), lambda n: ends[n][1])
        if merged.conflicts:
            keys = ", ".join(".".join(each.path) for each in merged.conflicts)
            problem = f"its branches disagree about {keys}; say with `merge` which one counts"
            raise _Stuck(problem, at.place)
        results = [ends[n][1] for n in counting]
        if node.kind == "workflow":
            return merged.state, results[0]
        return merged.state, flow_state.pick_result(node, begun, merged.state, results)

    def _turn(self, workflow: Workflow, role: str, at: str, prompt: str) -> Any:
        played = parse_role(self._nodes[workflow.roles[role]])
        name, schema = played.output_schema, self._nodes[played.output_schema].payload
        if played.workflow is not None:
            meta, _content = self._use(at, played.workflow, prompt)
            if schema_check.check_value(schema, meta):
                raise _Stuck(f"what its workflow answers does not fit the schema of {role}", at)
            return meta
        if len(self.roles) == MOST_TURNS:
            raise _Stuck(f"no end after {MOST_TURNS} turns: it goes round, {self._round()}", at)
        self.roles.append(role)
        if name not in self._least:
            try:
                self._least[name] = find_least(schema)
            except ValueError:
                raise _Stuck(
                    f"no answer was found that fits the schema of {role}; make it simpler", at
                ) from None
        return self._least[name]

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
