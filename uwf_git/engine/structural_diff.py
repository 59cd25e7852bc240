"""Structural diffs: the differences between two JSON values, by their paths.

Removing what was removed (by paths in the one), then setting what was added or changed (by paths in
the other), in order, gives the other. The order of an object's keys is no difference, and true is
not 1.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from uwf_git.engine.alignment import align

ValuePath: TypeAlias = tuple[str | int, ...]

DiffKind = Literal["added", "removed", "changed"]

# A longer path is unreadable; a deeper value differs as a whole.
_DEEPEST = 50
_PLAIN_KEY = re.compile(r"[^\s.\[\]\"]+")


class ValueChange(NamedTuple):
    """One difference."""

    kind: DiffKind
    path: ValuePath
    """The path: for what was removed, in the one; else in the other."""

    before: Any
    """The value in the one; None if it was added."""

    after: Any
    """The value in the other; None if it was removed."""


class _Place(NamedTuple):
    """The same place in both values."""

    one: ValuePath = ()
    other: ValuePath = ()

    def at(self, one: str | int, other: str | int) -> "_Place":
        return _Place((*self.one, one), (*self.other, other))


def diff_values(one: Any, other: Any) -> list[ValueChange]:
    """Return the changes that turn *one* into *other*; both must be JSON."""
    return list(_diff(_Place(), one, other))


def render_path(path: ValuePath) -> str:
    """Format a path as errors do: `phases[0].name`; "" is the root."""
    told = ""
    for part in path:
        if isinstance(part, int):
            told += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            told += f".{part}" if told else part
        else:
            told += f"[{json.dumps(part, ensure_ascii=False)}]"
    return told


def _diff(place: _Place, one: Any, other: Any) -> Iterator[ValueChange]:
    is_shallow = len(place.other) < _DEEPEST
    if is_shallow and isinstance(one, dict) and isinstance(other, dict):
        yield from _diff_objects(place, one, other)
    elif is_shallow and isinstance(one, list) and isinstance(other, list):
        yield from _diff_lists(place, one, other)
    elif _spelled(one) != _spelled(other):
        yield ValueChange("changed", place.other, one, other)


def _diff_objects(
    place: _Place, one: Mapping[str, Any], other: Mapping[str, Any]
) -> Iterator[ValueChange]:
    for key, value in one.items():
        if key in other:
            yield from _diff(place.at(key, key), value, other[key])
        else:
            yield ValueChange("removed", (*place.one, key), value, None)
    for key, value in other.items():
        if key not in one:
            yield ValueChange("added", (*place.other, key), None, value)


def _diff_lists(place: _Place, one: Sequence[Any], other: Sequence[Any]) -> Iterator[ValueChange]:
    """Compare the elements between equal ones pair by pair."""
    ones: list[int] = []
    others: list[int] = []
    for pair in align([*map(_spelled, one)], [*map(_spelled, other)]):
        if pair.one is not None and pair.other is not None:
            yield from _diff_runs(place, (one, ones), (other, others))
            ones, others = [], []
        elif pair.one is not None:
            ones.append(pair.one)
        elif pair.other is not None:
            others.append(pair.other)
    yield from _diff_runs(place, (one, ones), (other, others))


def _diff_runs(
    place: _Place,
    removed: tuple[Sequence[Any], Sequence[int]],
    added: tuple[Sequence[Any], Sequence[int]],
) -> Iterator[ValueChange]:
    (one, ones), (other, others) = removed, added
    for x, y in zip(ones, others, strict=False):
        yield from _diff(place.at(x, y), one[x], other[y])
    for x in ones[len(others) :]:
        yield ValueChange("removed", (*place.one, x), one[x], None)
    yield from (
        ValueChange("added", (*place.other, y), None, other[y]) for y in others[len(ones) :]
    )


def _spelled(value: Any) -> str:
    """Return a text that only equal values share: to Python 1 equals true."""
    return json.dumps(value, sort_keys=True)
