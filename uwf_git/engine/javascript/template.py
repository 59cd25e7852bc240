"""Templates: texts with `${expression}` in them; and many expressions asked of the same data."""

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from uwf_git.engine.javascript.evaluator import evaluate, evaluate_condition
from uwf_git.engine.javascript.parser import Expression, parse_expression, parse_tokens
from uwf_git.engine.javascript.values import (
    SOURCE_BYTES,
    TEXT_UNITS,
    UNDEFINED,
    Budget,
    ExpressionFailed,
    Unanswerable,
    has_surrogate,
    number_text,
    tokenize,
)

# Templates: texts with `${expression}` in them.

_MARK = re.compile(r"\\?\$\{")


class Template(NamedTuple):
    """A checked template: its text, its pieces in order, and the names that these read."""

    source: str
    parts: tuple[str | Expression, ...]
    names: frozenset[str]


def parse_template(source: str, names: Collection[str] | None = None) -> Template:
    r"""Return *source* in pieces; `\${` is a literal `${`, and every other `\` is itself."""
    if len(source) > TEXT_UNITS:
        raise ExpressionFailed(source, f"it is longer than {TEXT_UNITS} characters", None)
    parts: list[str | Expression] = []
    at = size = 0
    while mark := _MARK.search(source, at):
        parts.append(source[at : mark.start()])
        at = mark.end()
        if mark[0] == "${":
            tokens, end = tokenize(source, at, in_template=True)
            size += end - at
            if size > SOURCE_BYTES:
                problem = f"its expressions are longer than {SOURCE_BYTES} characters in all"
                raise ExpressionFailed(source, problem, at)
            parts.append(parse_tokens(source, tokens, names))
            at = end + 1
        else:
            parts.append("${")
    parts.append(source[at:])
    read = [part.names for part in parts if isinstance(part, Expression)]
    return Template(source, tuple(filter(None, parts)), frozenset().union(*read))


def fill_template(
    template: Template, names: Mapping[str, Any], budget: Budget | None = None
) -> Any:
    """Return the template's text; of a single `${expression}` its value, as JSON data.

    Within text, a text goes as it is, null, booleans and numbers as JavaScript prints them, arrays
    and objects as JSON.stringify does. All expressions together have the limits of a single
    expression.
    """
    budget = budget or Budget()
    if len(template.parts) == 1 and isinstance(template.parts[0], Expression):
        return _told(template.parts[0], names, budget, _plain)
    texts = [
        part if isinstance(part, str) else _told(part, names, budget, _text)
        for part in template.parts
    ]
    if sum(map(len, texts)) > TEXT_UNITS:
        problem = f"it makes a text of more than {TEXT_UNITS} characters"
        raise ExpressionFailed(template.source, problem, None)
    return "".join(texts)


def _told(
    part: Expression, names: Mapping[str, Any], budget: Budget, form: Callable[[Any, Budget], Any]
) -> Any:
    value = evaluate(part, names, budget)
    try:
        return form(value, budget)
    except Unanswerable as problem:
        raise ExpressionFailed(part.source, str(problem), part.root.position) from None


def _plain(value: Any, budget: Budget) -> Any:
    """Return *value* if it is JSON; -0 is 0 there."""
    match value:
        case list():
            return [_plain(each, budget) for each in value]
        case dict():
            return {_whole(key): _plain(each, budget) for key, each in value.items()}
        case str():
            return _whole(value)
        case float() if not math.isfinite(value):
            raise Unanswerable(f"{number_text(value)} is no JSON")
    if value is UNDEFINED:
        raise Unanswerable("it is undefined; `|| 'default'` gives a value")
    return value or 0 if isinstance(value, float) else value


def _text(value: Any, budget: Budget) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(float(value))
    value = _plain(value, budget)
    if isinstance(value, str):
        return value
    pieces: list[str] = []
    _write(value, pieces, budget)
    return "".join(pieces)


def _write(value: Any, pieces: list[str], budget: Budget) -> None:
    match value:
        case list():
            _write_all(value, "[]", pieces, budget)
        case dict():
            _write_all(value, "{}", pieces, budget)
        case str():
            budget.make(len(value))
            pieces.append(json.dumps(value, ensure_ascii=False))
        case bool() | None:
            pieces.append(json.dumps(value))
        case _:
            pieces.append(number_text(float(value)))


def _write_all(
    several: list[Any] | dict[str, Any], brackets: str, pieces: list[str], budget: Budget
) -> None:
    pieces.append(brackets[0])
    for number, each in enumerate(several):
        if number:
            pieces.append(",")
        _write(each, pieces, budget)
        if isinstance(several, dict):
            pieces.append(":")
            _write(several[each], pieces, budget)
    pieces.append(brackets[1])


def _whole(text: str) -> str:
    if has_surrogate(text):
        raise Unanswerable("it has half of a character (a lone surrogate)")
    return text


# Many expressions asked of the same data, one after the other: what they may cost together.
#
# A move of a flow may ask thousands, each within its own limits.

MOST = 10
"""They may cost as much as so many expressions that use a limit up."""


class Together:
    """Evaluates expressions and templates, each parsed once; their costs are limited together."""

    def __init__(self) -> None:
        self._left = float(MOST)
        self._expression, self._template = cache(parse_expression), cache(parse_template)

    def evaluate(self, source: str, names: Mapping[str, Any]) -> Any:
        with self._budget(source) as budget:
            return evaluate(self._expression(source, frozenset(names)), names, budget)

    def holds(self, source: str, names: Mapping[str, Any]) -> bool:
        with self._budget(source) as budget:
            return evaluate_condition(self._expression(source, frozenset(names)), names, budget)

    def fill(self, source: str, names: Mapping[str, Any]) -> Any:
        with self._budget(source) as budget:
            return fill_template(self._template(source, frozenset(names)), names, budget)

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
