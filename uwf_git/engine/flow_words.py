"""The expressions of a flow, evaluated where a thread stands: conditions, templates, lists.

Answers depend on the arguments alone. Call JSONata within limits (agents/limited_fork.py);
JavaScript has its own.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from uwf_git.engine.flow_move import count_passes
from uwf_git.engine.flow_state import ITERATION, read_state
from uwf_git.errors import Refused
from uwf_git.model.flow import (
    DEFAULT_BOUND,
    LONGEST_TIMEOUT_MS,
    MAX_ITEMS,
    Flow,
    FlowNode,
    Position,
)

if TYPE_CHECKING:
    from uwf_git.engine.javascript.template import Together


def _bad_flow_value(node: FlowNode, field_name: str, problem: str) -> Refused:
    return Refused(
        f"{field_name} of {node.label} ({node.place}) {problem}",
        code="flow-value",
        place=node.place,
        field=field_name,
    )


class _Asked:
    """What was asked of one state: expressions share their limits, and lists are read once."""

    def __init__(self) -> None:
        self.lists: dict[str, tuple[Position, list[Any]]] = {}
        """By place, the newest: where a move has left a loop it does not come again."""

    @cached_property
    def javascript(self) -> "Together":
        from uwf_git.engine.javascript.template import Together  # noqa: PLC0415 (flows only)

        return Together()


@dataclass(frozen=True, slots=True)
class FlowWords:
    """What evaluates a flow's expressions: an `Asker` of `flow_move`."""

    language: str
    state: Mapping[str, Any]
    prompt: str
    depth: int
    items: Mapping[str, Any] = field(default_factory=dict)

    flow: Flow | None = None

    _asked: "_Asked" = field(default_factory=_Asked, compare=False, repr=False)

    @property
    def _is_jsonata(self) -> bool:
        return self.language == "jsonata"

    def inside(self, at: Position) -> "FlowWords":
        """Return what evaluates expressions at *at*: with the items of the loops on the way.

        The state has such an item under its name, as a map's item in its branch, and its number,
        from 0, under that name and ``Index``. Neither is stored.
        """
        words, flow = self, self.flow
        for count, part in enumerate(at.parts, 1):
            loop = Position(at.parts[:count])
            node = None if flow is None or not part.turn else flow.nodes.get(loop.place)
            if flow is not None and node is not None and node.has_items:
                here = loop.without_turn()
                items = words.list_once(node, count_passes(flow, here), here)
                words = words._within_item(node, items, part.turn or 0)
        return words

    def list_once(self, node: FlowNode, iteration: int, at: Position) -> list[Any]:
        """Return what *node* at *at* goes over, for words that are inside of what is around it."""
        lists = self._asked.lists
        known = lists.get(node.place)
        if known is None or known[0] != at:
            known = lists[node.place] = (at, self.list_here(node, iteration))
        return known[1]

    def _within_item(self, node: FlowNode, items: list[Any], number: int) -> "FlowWords":
        """Return it in a pass of the loop *node*; a list that is shorter now has no such item."""
        own = {name: value for name, value in self.state.items() if name != node.item}
        items_around = {name: value for name, value in self.items.items() if name != node.item}
        if number <= len(items):
            own |= {node.item: items[number - 1], f"{node.item}Index": number - 1}
            items_around[node.item] = items[number - 1]
        return replace(self, state=own, items=items_around)

    def is_true(self, node: FlowNode, iteration: int, at: Position) -> bool:
        """Return whether the condition of *node*, which stands at *at*, holds."""
        return self.inside(at).holds(str(node.fields["condition"]), iteration)

    def accepts(self, node: FlowNode, meta: Any, iteration: int, at: Position) -> bool:
        """Return whether a verdict with *meta* accepts the work at *node*, which stands at *at*."""
        return self.inside(at).holds(str(node.verified_by["when"]), iteration, meta=meta)

    def holds(self, condition: str, iteration: int, **more: Any) -> bool:
        names = {**self._names(iteration), **more}
        if self._is_jsonata:
            from uwf_git.engine.expression import (  # noqa: PLC0415 (JSONata costs 40 ms)
                evaluate_condition,
            )

            return evaluate_condition(condition, names)
        return self._asked.javascript.holds(condition, names)

    def count_bound(self, node: FlowNode, iteration: int, at: Position) -> int:
        """Return the most passes of the loop *node*, which stands at *at*."""
        if node.has_items:
            return len(self.list_items(node, iteration, at.without_turn()))
        value = self.fill(node.fields.get("maxIterations", DEFAULT_BOUND), iteration, at)
        return _read_whole(node, "maxIterations", value, least=1)

    def count_retries(self, node: FlowNode, iteration: int, at: Position) -> int | None:
        """Return the ``retries`` of *node* for an agent at *at*; None: it says nothing."""
        value = self.fill(node.fields.get("retries"), iteration, at)
        return None if value is None else _read_whole(node, "retries", value, least=0)

    def find_timeout_ms(
        self, node: FlowNode, template: Any, iteration: int, at: Position
    ) -> float | None:
        """Return *template*, a ``timeout`` of *node*, for an agent at *at*; None: no timeout."""
        value = self.fill(template, iteration, at)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= LONGEST_TIMEOUT_MS:
            problem = (
                f"is {_shown(value)}, and no number of milliseconds above 0, of at most a year"
            )
            raise _bad_flow_value(node, "timeout", problem)
        return float(value)

    def list_items(self, node: FlowNode, iteration: int, at: Position) -> list[Any]:
        """Return what the map or loop *node*, which stands at *at*, goes over."""
        return self.inside(at).list_once(node, iteration, at)

    def list_here(self, node: FlowNode, iteration: int) -> list[Any]:
        """Return what *node* goes over, for words that are inside of what is around it."""
        over = str(node.fields["over"])
        is_template = "${" in over
        value = self.fill_here(over, iteration) if is_template else self._evaluate(over, iteration)
        if not isinstance(value, list):
            mend = "; brackets around the expression make it one" if self._is_jsonata else ""
            raise _bad_flow_value(node, "over", f"is {_shown(value)}, and no list{mend}")
        if len(value) > MAX_ITEMS:
            problem = f"has {len(value):,} items, of at most {MAX_ITEMS:,}"
            raise _bad_flow_value(node, "over", problem)
        return value

    def fill(self, template: Any, iteration: int, at: Position) -> Any:
        """Return a template filled at *at*; of an object every member, else as it is."""
        is_literal = not isinstance(template, str | dict | list)
        return template if is_literal else self.inside(at).fill_here(template, iteration)

    def fill_here(self, template: Any, iteration: int) -> Any:
        if isinstance(template, dict):
            return {name: self.fill_here(each, iteration) for name, each in template.items()}
        if isinstance(template, list):
            return [self.fill_here(each, iteration) for each in template]
        if not isinstance(template, str) or "${" not in template:
            return template
        names = self._names(iteration)
        if self._is_jsonata:
            return _fill(template, lambda source: self._evaluate(source, iteration))
        return self._asked.javascript.fill(template, names)

    def _evaluate(self, source: str, iteration: int) -> Any:
        names = self._names(iteration)
        if self._is_jsonata:
            from uwf_git.engine.expression import evaluate_value  # noqa: PLC0415 (costs 40 ms)

            return evaluate_value(source, names)
        from uwf_git.engine.javascript.values import UNDEFINED  # noqa: PLC0415 (flows only)

        value = self._asked.javascript.evaluate(source, names)
        return None if value is UNDEFINED else value

    def _names(self, iteration: int) -> dict[str, Any]:
        return {
            **self.items,
            "state": read_state(self.state, iteration),
            ITERATION: iteration,
            "prompt": self.prompt,
            "depth": self.depth,
        }


def name_items(flow: Flow, state: Mapping[str, Any], entry: Position | None) -> dict[str, Any]:
    names: dict[str, Any] = {}
    parts = () if entry is None else entry.parts
    for count in range(1, len(parts) + 1):
        node = flow.nodes.get(Position(parts[:count]).place)
        if node is not None and node.kind == "map":
            names[node.item] = state.get(node.item)
    return names


def _fill(template: str, evaluate: Callable[[str], Any]) -> Any:
    """Fill a template of JSONata: alone a value keeps its type, within text it becomes text."""
    from uwf_git.engine.expression import check_condition  # noqa: PLC0415 (JSONata costs 40 ms)
    from uwf_git.engine.jsonata_template import split_template  # noqa: PLC0415 (as above)

    pieces = split_template(template, check_condition)
    if len(pieces) == 1 and pieces[0].is_expression:
        return evaluate(pieces[0].text)
    return "".join(
        _as_text(evaluate(each.text)) if each.is_expression else each.text for each in pieces
    )


def _read_whole(node: FlowNode, field_name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise _bad_flow_value(node, field_name, f"is {_shown(value)}, and no whole number")
    if value < least:
        raise _bad_flow_value(node, field_name, f"is {_shown(value)}, and at least {least} is due")
    return int(value)


def _shown(value: Any) -> str:
    return f"{json.dumps(value, ensure_ascii=False):.60}"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
