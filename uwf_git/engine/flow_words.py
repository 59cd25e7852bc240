"""The expressions of a flow, evaluated where a thread stands: conditions, templates, lists.

Answers depend on the arguments alone. JavaScript is bounded by its own evaluator; JSONata is to be
called within limits (agents/limited_fork.py).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from uwf_git.engine.flow_state import ITERATION, read_state
from uwf_git.errors import Refused
from uwf_git.model.flow import DEFAULT_BOUND, FlowNode


class BadFlowValue(Refused):
    """An expression of a flow has a value of the wrong kind."""

    code = "flow-value"

    def __init__(self, node: FlowNode, field_name: str, problem: str) -> None:
        super().__init__(
            f"{field_name} of {node.label} ({node.place}) {problem}",
            place=node.place,
            field=field_name,
        )


@dataclass(frozen=True, slots=True)
class FlowWords:
    """What evaluates a flow's expressions: an `Asker` of `flow_move`."""

    language: str
    state: Mapping[str, Any]
    prompt: str
    depth: int
    items: Mapping[str, Any] = field(default_factory=dict)
    """The items of the maps around, by their names."""

    def is_true(self, node: FlowNode, iteration: int) -> bool:
        """Return whether the condition of *node* holds.

        Raises:
            ExpressionFailed, ConditionFailed: it has no value.
        """
        condition = str(node.fields["condition"])
        names = self._names(iteration)
        if self.language == "jsonata":
            from uwf_git.engine.expression import (  # noqa: PLC0415 (JSONata costs 40 ms)
                evaluate_condition,
            )

            return evaluate_condition(condition, names)
        from uwf_git.engine.javascript import evaluator, parser  # noqa: PLC0415 (flows only)

        return evaluator.evaluate_condition(parser.parse_expression(condition, names), names)

    def count_bound(self, node: FlowNode, iteration: int) -> int:
        """Return the most passes of the loop *node*.

        Raises:
            BadFlowValue: its ``maxIterations`` is no whole number from 1.
            What ``is_true`` raises.
        """
        value = self.fill(node.fields.get("maxIterations", DEFAULT_BOUND), iteration)
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            raise BadFlowValue(node, "maxIterations", f"is {value!r:.60}, and no whole number")
        if value < 1:
            raise BadFlowValue(node, "maxIterations", f"is {value!r:.60}, and at least 1 is due")
        return int(value)

    def list_items(self, node: FlowNode, iteration: int) -> list[Any]:
        """Return what the map *node* goes over.

        Raises:
            BadFlowValue: its ``over`` is no list.
            What ``is_true`` raises.
        """
        over = str(node.fields["over"])
        is_template = "${" in over
        value = self.fill(over, iteration) if is_template else self._evaluate(over, iteration)
        if not isinstance(value, list):
            raise BadFlowValue(node, "over", f"is {value!r:.60}, and no list")
        return value

    def fill(self, template: Any, iteration: int) -> Any:
        """Return a template filled; of an object every member, anything else as it is.

        Raises:
            What ``is_true`` raises.
        """
        if isinstance(template, dict):
            return {name: self.fill(each, iteration) for name, each in template.items()}
        if isinstance(template, list):
            return [self.fill(each, iteration) for each in template]
        if not isinstance(template, str) or "${" not in template:
            return template
        names = self._names(iteration)
        if self.language == "jsonata":
            return _fill(template, lambda source: self._evaluate(source, iteration))
        from uwf_git.engine.javascript.template import (  # noqa: PLC0415 (flows only)
            fill_template,
            parse_template,
        )

        return fill_template(parse_template(template, names), names)

    def _evaluate(self, source: str, iteration: int) -> Any:
        names = self._names(iteration)
        if self.language == "jsonata":
            from uwf_git.engine.expression import evaluate_value  # noqa: PLC0415 (costs 40 ms)

            return evaluate_value(source, names)
        from uwf_git.engine.javascript import evaluator, parser  # noqa: PLC0415 (flows only)
        from uwf_git.engine.javascript.undefined import UNDEFINED  # noqa: PLC0415 (flows only)

        value = evaluator.evaluate(parser.parse_expression(source, names), names)
        return None if value is UNDEFINED else value

    def _names(self, iteration: int) -> dict[str, Any]:
        return {
            **self.items,
            "state": read_state(self.state, iteration),
            ITERATION: iteration,
            "prompt": self.prompt,
            "depth": self.depth,
        }


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


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
