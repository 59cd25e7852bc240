"""The moderator: decide the next role; simple conditions are answered without JSONata."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from uwf_git.engine.lazy_list import HISTORY, LazyContext, map_list
from uwf_git.errors import Refused
from uwf_git.model.workflow import Graph

# Simple conditions, answered without JSONata: importing it and forking cost more than a step.
#
# It knows paths over objects, texts, numbers, comparisons, ``in``, ``and``, ``or``, ``$not``,
# ``$exists`` and ``$count``. Its answers are those of `evaluate_condition` (a property test
# compares them); for all else, also for what would be an error there, it has none.

_LENGTH = 1000
_TOKENS = 100
"""So few that no condition reaches a limit of `expression.py` on nesting."""

_EXACT = 2**53
"""Below it every whole number is exact as a float."""

# A number and a name end only where both languages agree that they end. Escapes, comments, and
# halves of surrogate pairs are left to JSONata.
# A string: it is compiled, and kept, by the first condition; most commands meet none.
_LEXEME = r"""[ \t\r\n]*(?:
    (?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?=[ \t\r\n)\],=!<>]|\Z)
  | (?P<word>[^\W\d]\w*)(?=[ \t\r\n.()\[\],=!<>]|\Z)
  | `(?P<name>[^`\ud800-\udfff]*)`
  | "(?P<text>[^"\\\ud800-\udfff]*)"
  | '(?P<single>[^'\\\ud800-\udfff]*)'
  | (?P<call>\$(?:count|exists|not))[ \t\r\n]*\(
  | (?P<sign>[!<>]=|[-.,=<>()\[\]])
  | (?P<end>\Z)
)"""
_VALUES = {"true": True, "false": False, "null": None}

_MISSING: Any = object()
"""JSONata's "undefined"; null is None."""

_Part: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""A part of a condition: returns its value in a context."""


class NotPlain(Exception):
    """There is no answer here: ask `evaluate_condition`."""


def plainly_holds(condition: str, context: Mapping[str, Any]) -> bool:
    """Return what `evaluate_condition` returns, without reading the history."""
    return _is_true(_Reader(condition).read()(context))


def _split(condition: str) -> list[tuple[str, Any]]:
    """Return the tokens: each a name, a value, a call or a sign (also ``and``), then the end."""
    if len(condition) > _LENGTH:
        raise NotPlain
    token = re.compile(_LEXEME, re.VERBOSE)
    tokens: list[tuple[str, Any]] = []
    place = 0
    kind: str | None = None
    while kind != "end":
        found = token.match(condition, place)
        if found is None or len(tokens) == _TOKENS:
            raise NotPlain
        place, kind = found.end(), found.lastgroup
        text = found[kind or 0]
        if kind == "number":
            tokens.append(("value", _scalar(float(text))))
        elif kind in ("text", "single"):
            tokens.append(("value", text))
        elif kind == "word" and text in _VALUES:
            tokens.append(("value", _VALUES[text]))
        elif kind == "word":
            tokens.append(("sign" if text in ("and", "or", "in") else "name", text))
        else:
            tokens.append((str(kind), text))
    return tokens


class _Reader:
    """Reads a condition by descent: a method for each strength of binding, weakest first."""

    def __init__(self, condition: str) -> None:
        self._tokens = iter(_split(condition))
        self._kind, self._token = next(self._tokens)

    def read(self) -> _Part:
        part = self._any_of()
        if self._kind != "end":
            raise NotPlain
        return part

    def _any_of(self) -> _Part:
        part = self._all_of()
        while self._takes("or"):
            part = _either(part, self._all_of())
        return part

    def _all_of(self) -> _Part:
        part = self._comparison()
        while self._takes("and"):
            part = _both(part, self._comparison())
        return part

    def _comparison(self) -> _Part:
        part = self._operand()
        while self._kind == "sign" and self._token in _COMPARISONS:
            part = _compared(_COMPARISONS[self._taken()], part, self._operand())
        return part

    def _operand(self) -> _Part:
        if self._kind == "call":
            function = _FUNCTIONS[self._taken()]
            return _called(function, self._closed())
        if self._kind == "name":
            return _path(self._names())
        if self._takes("("):
            return self._closed()
        return _constant(self._list() if self._takes("[") else self._value())

    def _closed(self) -> _Part:
        part = self._any_of()
        self._demand(")")
        return part

    def _names(self) -> list[str]:
        names = [self._taken()]
        while self._takes("."):
            if self._kind != "name":
                raise NotPlain
            names.append(self._taken())
        if names[0] == HISTORY:
            raise NotPlain
        return names

    def _list(self) -> list[Any]:
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._demand("]")
        return values

    def _value(self) -> Any:
        is_negative = self._takes("-")
        if self._kind != "value" or (is_negative and not isinstance(self._token, float)):
            raise NotPlain
        value = self._taken()
        return -value if is_negative else value

    def _takes(self, sign: str) -> bool:
        is_next = self._kind == "sign" and self._token == sign
        if is_next:
            self._taken()
        return is_next

    def _demand(self, sign: str) -> None:
        if not self._takes(sign):
            raise NotPlain

    def _taken(self) -> Any:
        token = self._token
        self._kind, self._token = next(self._tokens)
        return token


def _constant(value: Any) -> _Part:
    return lambda _context: value


def _path(names: list[str]) -> _Part:
    def read(context: Mapping[str, Any]) -> Any:
        value: Any = context
        for name in names:
            if isinstance(value, (list, tuple)):
                # JSONata maps over it, and flattens.
                raise NotPlain
            value = value.get(name, _MISSING) if isinstance(value, Mapping) else _MISSING
        return value

    return read


def _either(left: _Part, right: _Part) -> _Part:
    return lambda context: _is_true(left(context)) or _is_true(right(context))


def _both(left: _Part, right: _Part) -> _Part:
    return lambda context: _is_true(left(context)) and _is_true(right(context))


def _called(function: Callable[[Any], Any], argument: _Part) -> _Part:
    return lambda context: function(argument(context))


def _compared(compare: Callable[[Any, Any], Any], left: _Part, right: _Part) -> _Part:
    return lambda context: compare(left(context), right(context))


def _is_true(value: Any) -> bool:
    items = value if isinstance(value, (list, tuple)) else [value]
    return any(bool(each) if isinstance(each, Mapping) else _is_set(each) for each in items)


def _is_set(value: Any) -> bool:
    return value is not _MISSING and bool(_scalar(value))


def _scalar(value: Any) -> Any:
    """Return *value* if it is a text, true, false, null, missing, or a number that is exact."""
    if value is None or value is _MISSING or isinstance(value, (str, bool)):
        return value
    # Not so if it is nan.
    if isinstance(value, (int, float)) and abs(value) < _EXACT:
        return value
    raise NotPlain


def _is_equal(left: Any, right: Any) -> bool:
    if _is_missing(left, right):
        return False
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _is_unequal(left: Any, right: Any) -> bool:
    return not _is_missing(left, right) and not _is_equal(left, right)


def _is_missing(left: Any, right: Any) -> bool:
    return _scalar(left) is _MISSING or _scalar(right) is _MISSING


def _is_in(left: Any, right: Any) -> bool:
    values = right if isinstance(right, (list, tuple)) else [right]
    return any(_is_equal(left, each) for each in values)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def compare(left: Any, right: Any) -> Any:
        present = [_scalar(each) for each in (left, right) if each is not _MISSING]
        # What has no order is an error in JSONata even beside what is missing.
        if any(each is None or isinstance(each, bool) for each in present):
            raise NotPlain
        if len(present) < 2:  # noqa: PLR2004 (a pair)
            return _MISSING
        if isinstance(left, str) != isinstance(right, str):
            raise NotPlain
        return holds(left, right)

    return compare


_COMPARISONS = {
    "=": _is_equal,
    "!=": _is_unequal,
    "in": _is_in,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def _count(value: Any) -> int:
    if value is _MISSING:
        return 0
    return len(value) if isinstance(value, (list, tuple)) else 1


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "$count": _count,
    "$exists": lambda value: value is not _MISSING,
    "$not": lambda value: value if value is _MISSING else not _is_true(value),
}


# The moderator: decide the next role.
#
# The answer depends on the arguments alone, so the same history gives the same next role on every
# machine. Rules:
#  1. Transitions are tried in the order in which they were written.
#  2. A transition without a condition always holds.
#  3. The first that holds wins; those after it are not tried.
#  4. If none holds, that is an error, never an end.


class StepSummary(NamedTuple):
    role: str
    meta: Mapping[str, Any]


class Position(NamedTuple):
    """Where a thread stands: the step just done (at first ``START``, depth 0), and the state."""

    role: str
    """The role whose step was just done, or ``START``."""

    meta: Mapping[str, Any]

    depth: int
    """How many steps are done."""

    state: Mapping[str, Any]
    prompt: str
    iteration: int
    start_time_ms: int


def next_role(graph: Graph, position: str, holds: Callable[[str], bool]) -> str:
    """Return the role that follows *position*, or ``END``; errors of *holds* are never "false"."""
    if position not in graph:
        raise Refused(
            f"the moderator has no transitions from {position}",
            code="unknown-position",
            hint=f"it knows {', '.join(graph) or 'no position at all'}; "
            f"add `from: {position}` to the workflow's file",
            position=position,
            known=list(graph),
        )
    ways = graph[position]
    for way in ways:
        if way.condition is None or holds(way.condition):
            return way.to
    raise Refused(
        f"no transition from {position} holds",
        code="no-transition",
        hint="give its last transition `condition: null` in the workflow's file",
        position=position,
        asked=[{"to": each.to, "condition": each.condition} for each in ways],
    )


def build_context(
    position: Position, load_history: Callable[[], Sequence[StepSummary]]
) -> LazyContext:
    """Return what a condition sees at *position*.

    *load_history* returns the steps before the step just done, oldest first: at depth 3, two (seed
    000's example). It is called only if a condition reads ``history``, and never where there can be
    no earlier step. Of a ``LazyList`` only the items are read that the condition looks at.
    """

    def summaries() -> Sequence[dict[str, Any]]:
        if position.depth <= 1:
            return []
        return map_list(load_history(), lambda step: {"role": step.role, "meta": step.meta})

    known = {
        "role": position.role,
        "meta": position.meta,
        "depth": position.depth,
        "state": position.state,
        "prompt": position.prompt,
        "iteration": position.iteration,
        "startTime": position.start_time_ms,
    }
    return LazyContext(known, summaries)
