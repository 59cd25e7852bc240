"""JSON data as JavaScript reads it: elements, members and keys; and results as JSON data again."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.engine.javascript import prototypes
from uwf_git.engine.javascript.budget import Budget
from uwf_git.engine.javascript.characters import from_units, has_surrogate, to_units
from uwf_git.engine.javascript.failure import Unanswerable
from uwf_git.engine.javascript.tokens import to_double
from uwf_git.engine.javascript.undefined import UNDEFINED
from uwf_git.engine.javascript.values import described, is_array, to_text

_ARRAY_INDEXES = 2**32 - 1
_INDEX_DIGITS = 10

# Of a result. What is deeper can be read, member by member.
_LEVELS = 200

EXACT = 2**53
"""Up to here a double is a whole number and its neighbours are too."""


class Reader:
    """Reads the data of one evaluation, within its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        # By identity, with the text itself, which must not go while its identity is used.
        self._texts: dict[int, tuple[str, str]] = {}

    def value(self, raw: Any) -> Any:
        """Return a piece of data as a value (`values.py`); a value is one already."""
        if isinstance(raw, str):
            return raw if raw.isascii() else self._units(raw)
        if isinstance(raw, float | bool) or raw is None or raw is UNDEFINED:
            return raw
        if isinstance(raw, int):
            return to_double(raw)
        if isinstance(raw, list | tuple | Mapping):
            return raw
        raise Unanswerable(f"the data holds a {type(raw).__name__}, which JSON has not")

    def _units(self, text: str) -> str:
        known = self._texts.get(id(text))
        if known is None:
            self.budget.read(len(text))
            units = to_units(text)
            if units is not text:
                self.budget.pair(len(units))
            known = self._texts[id(text)] = (text, units)
        return known[1]

    def elements(self, array: Any) -> Iterator[Any]:
        """Yield the values of an array."""
        self.budget.visit(len(array))
        return map(self.value, array)

    def member(self, target: Any, key: Any) -> Any:
        """Return `target[key]`.

        Raises:
            Unanswerable: *target* is null or undefined, or has the name from its prototype.
        """
        if target is None or target is UNDEFINED:
            told = described(key).removeprefix("the text ")
            raise Unanswerable(f"{to_text(target)} has no member {told}; `?.` allows that")
        name = to_text(key)
        if name in prototypes.OBJECT:
            raise Unanswerable(f"`{name}` belongs to every object, and cannot be read")
        if isinstance(target, Mapping):
            self.budget.read(len(name))
            return self.value(target.get(from_units(name), UNDEFINED))
        if isinstance(target, bool):
            return UNDEFINED
        if isinstance(target, float):
            return _inherited(name, prototypes.NUMBER)
        if name == "length":
            return float(len(target))
        if not _is_index(name):
            names = prototypes.TEXT if isinstance(target, str) else prototypes.ARRAY
            return _inherited(name, names)
        index = int(name)
        return self.value(target[index]) if index < len(target) else UNDEFINED

    def keys(self, target: Any) -> list[str]:
        """Return `Object.keys(target)` of an array or object, as data."""
        if is_array(target):
            self.budget.visit(len(target))
            return [str(index) for index in range(len(target))]
        if isinstance(target, Mapping):
            self.budget.visit(len(target))
            return in_order(target)
        raise Unanswerable(f"Object.keys({described(target)}): it is no object")

    def exported(self, value: Any, level: int = 0) -> Any:
        """Return a copy of *value* as JSON data (UNDEFINED stays), with numbers as doubles."""
        if isinstance(value, str):
            return self._exported_text(value)
        if isinstance(value, list | tuple):
            check_level(level)
            self.budget.visit(len(value))
            return [self.exported(each, level + 1) for each in value]
        value = self.value(value)
        if isinstance(value, float):
            is_whole = abs(value) <= EXACT and value.is_integer()
            # An int has no -0.
            return int(value) if is_whole and (value or math.copysign(1, value) > 0) else value
        if isinstance(value, Mapping):
            check_level(level)
            self.budget.visit(len(value))
            return {key: self.exported(value[key], level + 1) for key in in_order(value)}
        return value

    def _exported_text(self, text: str) -> str:
        if text.isascii():
            return text
        self.budget.read(len(text))
        if has_surrogate(text):
            self.budget.pair(len(text))
        return from_units(text)


def check_level(level: int) -> None:
    """Refuse data that nests deeper than Python's stack allows on every machine."""
    if level > _LEVELS:
        raise Unanswerable(f"the data nests more than {_LEVELS} levels deep")


def in_order(names: Mapping[str, Any]) -> list[str]:
    """Return the keys as JavaScript orders them: indexes first, upwards."""
    indexes = [name for name in names if _is_index(name)]
    if not indexes:
        return list(names)
    return sorted(indexes, key=int) + [name for name in names if not _is_index(name)]


def _inherited(name: str, names: frozenset[str]) -> Any:
    if name in names:
        raise Unanswerable(f"`{name}` is a method, and can only be called as the grammar has it")
    return UNDEFINED


def _is_index(name: str) -> bool:
    if not name or len(name) > _INDEX_DIGITS or not (name.isascii() and name.isdigit()):
        return False
    return (name[0] != "0" or name == "0") and int(name) < _ARRAY_INDEXES
