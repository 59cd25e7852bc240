"""The moderator: decide the next role, of a history that is read as far as conditions ask."""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex, TypeVar, overload

from uwf_git.errors import Refused
from uwf_git.model.workflow import END, Graph
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.engine import expression as expression  # noqa: PLC0414 (others import it from here)
else:
    expression = Lazy("uwf_git.engine.expression")  # JSONata: 40 ms

# Lazy lists: read-only lists whose items are read when they are accessed.
#
# A step must cost the same at any depth, and most agents and conditions look at the newest steps
# alone. They are real lists, because jsonata, json and dataclasses test ``isinstance(…, list)``,
# so each way around ``__getitem__`` that C code has is overridden by name.

Item = TypeVar("Item")
Other = TypeVar("Other")


_WHOLE = ("__lt__", "__le__", "__gt__", "__ge__", "__mul__", "__rmul__", "index", "count", "copy")
"""The methods that read all items."""


def _of_plain(name: str) -> Callable[..., Any]:
    def call(self: list[Any], *others: Any) -> Any:
        others = tuple(list(each) if isinstance(each, LazyList) else each for each in others)
        return getattr(list(self), name)(*others)

    return call


class LazyList(list[Item]):
    """A read-only list of the items at *places*, which *read* returns; made by ``lazy_list``.

    The length is known without reading. Slices are lazy too. The newest item that was read is kept,
    so ``steps[-1].meta, steps[-1].content`` reads once. Copies, but for ``copy.copy``, are plain
    lists.
    """

    __slots__ = ("_kept", "_places", "_read")

    _places: range
    _read: Callable[[int], Item]
    _kept: tuple[int, Any]

    def __new__(cls, items: Iterable[Any] = ()) -> Any:
        """Return a plain list: `dataclasses.asdict` makes its copy by calling the class."""
        return list(items)

    def mapped(self, change: Callable[[Item], Other]) -> "LazyList[Other]":
        """Return the list of what *change* returns for each item, as lazy as this one."""
        read = self._read
        return _make(self._places, lambda place: change(read(place)))

    def _get(self, place: int) -> Item:
        # One assignment of a pair: other Python threads may read at the same time.
        at, item = self._kept
        if at != place:
            item = self._read(place)
            self._kept = (place, item)
        found: Item = item
        return found

    @overload
    def __getitem__(self, index: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> "LazyList[Item]": ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _make(self._places[index], self._read)
        try:
            place = self._places[index]
        except IndexError:
            raise IndexError("list index out of range") from None
        return self._get(place)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Item]:
        return map(self._get, self._places)

    def __reversed__(self) -> Iterator[Item]:
        return map(self._get, reversed(self._places))

    def __contains__(self, item: object) -> bool:
        return any(each is item or each == item for each in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple):
            return NotImplemented
        if isinstance(other, LazyList) and (self._read, self._places) == (
            other._read,
            other._places,
        ):
            return True
        return len(self) == len(other) and all(
            one is each or one == each for one, each in zip(self, other, strict=True)
        )

    def __ne__(self, other: object) -> bool:
        return NotImplemented if not isinstance(other, list | tuple) else not self == other

    __hash__ = None  # as for every list
    __lt__, __le__, __gt__, __ge__, __mul__, __rmul__, index, count, copy = map(_of_plain, _WHOLE)

    def __add__(self, other: Any) -> Any:
        return type(other)([*self, *other]) if type(other) in (list, tuple) else [*self, *other]

    def __radd__(self, other: Any) -> Any:
        return type(other)([*other, *self])

    def __copy__(self) -> "LazyList[Item]":
        return self

    def __reduce__(self) -> tuple[type[list[Item]], tuple[list[Item]]]:
        # copy.deepcopy and pickle get a plain list: a reader cannot be copied.
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"<{len(self):,} items, read when accessed>"

    def _refuse(self, *_args: Any, **_more: Any) -> NoReturn:
        raise TypeError("a lazy list cannot be changed; `list(…)` of it can")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse


def lazy_list(length: int, read: Callable[[int], Item]) -> LazyList[Item]:
    return _make(range(length), read)


def map_list(items: Sequence[Item], change: Callable[[Item], Other]) -> Sequence[Other]:
    """Return what *change* returns for each item: a lazy list of a lazy list, else a tuple."""
    return items.mapped(change) if isinstance(items, LazyList) else tuple(map(change, items))


def _make(places: range, read: Callable[[int], Item]) -> LazyList[Item]:
    made: LazyList[Item] = list.__new__(LazyList)
    made._places, made._read, made._kept = places, read, (-1, None)  # noqa: SLF001 (our own)
    return made


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


class NotPlain(Exception):
    """There is no answer here: ask `evaluate_condition`."""


def plainly_holds(condition: str, context: Mapping[str, Any]) -> bool:
    """Return what `evaluate_condition` returns, without reading the history."""
    return _is_true(_Reader(condition, context).read())


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
    """Reads and answers a condition by descent: a method for each strength of binding.

    Behind a value that decides ``and`` or ``or`` all is read, and nothing is evaluated.
    """

    def __init__(self, condition: str, context: Mapping[str, Any]) -> None:
        self._tokens = iter(_split(condition))
        self._kind, self._token = next(self._tokens)
        self._context = context
        self._is_decided = False

    def read(self) -> Any:
        value = self._any_of()
        if self._kind != "end":
            raise NotPlain
        return value

    def _any_of(self) -> Any:
        return self._joined("or", lambda: self._joined("and", self._comparison))

    def _joined(self, sign: str, read: Callable[[], Any]) -> Any:
        value = read()
        while self._takes(sign):
            value = _is_true(value)
            before, decides = self._is_decided, value == (sign == "or")
            self._is_decided = before or decides
            other = _is_true(read())
            value = value if decides else other
            self._is_decided = before
        return value

    def _comparison(self) -> Any:
        value = self._operand()
        while self._kind == "sign" and self._token in _COMPARISONS:
            compare = _COMPARISONS[self._taken()]
            other = self._operand()
            value = _MISSING if self._is_decided else compare(value, other)
        return value

    def _operand(self) -> Any:
        if self._kind == "call":
            function = _FUNCTIONS[self._taken()]
            value = self._closed()
            return _MISSING if self._is_decided else function(value)
        if self._kind == "name":
            return self._path()
        if self._takes("("):
            return self._closed()
        if not self._takes("["):
            return self._value()
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._demand("]")
        return values

    def _closed(self) -> Any:
        value = self._any_of()
        self._demand(")")
        return value

    def _path(self) -> Any:
        value: Any = _MISSING if self._is_decided else self._context
        if self._token == "history":  # noqa: S105 (a word of the condition)
            raise NotPlain
        while True:
            if self._kind != "name" or isinstance(value, (list, tuple)):
                # JSONata maps over a list, and flattens.
                raise NotPlain
            name = self._taken()
            value = value.get(name, _MISSING) if isinstance(value, Mapping) else _MISSING
            if not self._takes("."):
                return value

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


def _is_true(value: Any) -> bool:
    items = value if isinstance(value, (list, tuple)) else [value]
    return any(
        bool(each) if isinstance(each, Mapping) else each is not _MISSING and bool(_scalar(each))
        for each in items
    )


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
    "!=": lambda left, right: not (_is_missing(left, right) or _is_equal(left, right)),
    "in": _is_in,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def _count(value: Any) -> int:
    return len(value) if isinstance(value, (list, tuple)) else int(value is not _MISSING)


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
        hint="remove `when` or `condition` of its last transition in the workflow's file",
        position=position,
        asked=[{"to": each.to, "condition": each.condition} for each in ways],
    )


def check_role(role: str, roles: Collection[str]) -> None:
    # No file leads elsewhere, but a Workflow node that was put by hand may.
    if role != END and role not in roles:
        raise Refused(
            f"the moderator leads to {role}, which is no role of the workflow",
            code="unknown-position",
            hint=f"its roles are {', '.join(roles)}",
            position=role,
        )


def build_context(
    position: Position, load_history: Callable[[], Sequence[StepSummary]]
) -> dict[str, Any]:
    """Return what a condition sees at *position*.

    *load_history* returns the steps before the step just done, oldest first: at depth 3, two (seed
    000's example). It is not called where there can be no earlier step. Of a ``LazyList`` only the
    items are read that the condition looks at.
    """
    history = load_history() if position.depth > 1 else ()
    return {
        "role": position.role,
        "meta": position.meta,
        "depth": position.depth,
        "state": position.state,
        "prompt": position.prompt,
        "iteration": position.iteration,
        "startTime": position.start_time_ms,
        "history": map_list(history, lambda step: {"role": step.role, "meta": step.meta}),
    }
