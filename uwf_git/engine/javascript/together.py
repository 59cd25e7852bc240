"""Many expressions asked of the same data, one after the other: what they may cost together.

A move of a flow may ask thousands, each within its own limits.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from uwf_git.engine.javascript.budget import Budget
from uwf_git.engine.javascript.evaluator import evaluate, evaluate_condition
from uwf_git.engine.javascript.failure import ExpressionFailed
from uwf_git.engine.javascript.parser import parse_expression
from uwf_git.engine.javascript.syntax import Expression
from uwf_git.engine.javascript.template import Template, fill_template, parse_template

MOST = 10
"""They may cost as much as so many expressions that use a limit up."""


class Together:
    """Evaluates expressions and templates; each text is parsed once.

    All methods raise ExpressionFailed as the functions do that they are named after, and when the
    expressions before have cost too much.
    """

    def __init__(self) -> None:
        self._left = float(MOST)
        self._expressions: dict[tuple[str, frozenset[str]], Expression] = {}
        self._templates: dict[tuple[str, frozenset[str]], Template] = {}

    def evaluate(self, source: str, names: Mapping[str, Any]) -> Any:
        """Return the value of an expression."""
        with self._budget(source) as budget:
            return evaluate(self._parse(source, names), names, budget)

    def holds(self, source: str, names: Mapping[str, Any]) -> bool:
        """Return whether the value of an expression is true for JavaScript."""
        with self._budget(source) as budget:
            return evaluate_condition(self._parse(source, names), names, budget)

    def fill(self, source: str, names: Mapping[str, Any]) -> Any:
        """Return a template filled."""
        key = (source, frozenset(names))
        if key not in self._templates:
            self._templates[key] = parse_template(source, names)
        with self._budget(source) as budget:
            return fill_template(self._templates[key], names, budget)

    def _parse(self, source: str, names: Collection[str]) -> Expression:
        key = (source, frozenset(names))
        if key not in self._expressions:
            self._expressions[key] = parse_expression(source, names)
        return self._expressions[key]

    @contextmanager
    def _budget(self, source: str) -> Iterator[Budget]:
        if self._left <= 0:
            problem = "it is one of too many, which took too much work together"
            raise ExpressionFailed(source, problem, None)
        budget = Budget()
        try:
            yield budget
        finally:
            self._left -= budget.spent
