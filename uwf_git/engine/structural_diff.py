"""Structural diffs: what differs between two JSON values, by the places where it does.

Owns: which changes make the one of the other, and how a place is written.
Knows nothing of: whose values they are.
Always true: taking out what was removed (by places in the one), then putting in what was added
and what has changed (by places in the other), in the order told, gives the other. Values that
are equal have no difference; the order of an object's keys is none, and true is not 1.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from uwf_git.engine.alignment import align

Path: TypeAlias = tuple[str | int, ...]

Kind = Literal["added", "removed", "changed"]

# Nobody reads a path that is longer; what lies below differs as a whole.
_DEEPEST = 50
_PLAIN_KEY = re.compile(r"[^\s.\[\]\"]+")


class Change(NamedTuple):
    """One difference."""

    kind: Kind
    path: Path
    """Where: what was removed, in the one; else in the other."""

    before: Any
    """What the one has there; None if it was added."""

    after: Any
    """What the other has there; None if it was removed."""


class _Place(NamedTuple):
    """The same place in both values."""

    one: Path = ()
    other: Path = ()

    def at(self, one: str | int, other: str | int) -> "_Place":
        return _Place((*self.one, one), (*self.other, other))


def diff_values(one: Any, other: Any) -> list[Change]:
    """Give the changes that make *other* of *one*; both must be JSON."""
    return list(_diff(_Place(), one, other))


def render_path(path: Path) -> str:
    """Write a place as errors do: `phases[0].name`; "" is the whole."""
    told = ""
    for part in path:
        if isinstance(part, int):
            told += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            told += f".{part}" if told else part
        else:
            told += f"[{json.dumps(part, ensure_ascii=False)}]"
    return told


def _diff(place: _Place, one: Any, other: Any) -> Iterator[Change]:
    is_shallow = len(place.other) < _DEEPEST
    if is_shallow and isinstance(one, dict) and isinstance(other, dict):
        yield from _diff_objects(place, one, other)
    elif is_shallow and isinstance(one, list) and isinstance(other, list):
        yield from _diff_lists(place, one, other)
    elif _spelled(one) != _spelled(other):
        yield Change("changed", place.other, one, other)


def _diff_objects(
    place: _Place, one: Mapping[str, Any], other: Mapping[str, Any]
) -> Iterator[Change]:
    for key, value in one.items():
        if key in other:
            yield from _diff(place.at(key, key), value, other[key])
        else:
            yield Change("removed", (*place.one, key), value, None)
    for key, value in other.items():
        if key not in one:
            yield Change("added", (*place.other, key), None, value)


def _diff_lists(place: _Place, one: Sequence[Any], other: Sequence[Any]) -> Iterator[Change]:
    """Compare what has no equal on the other side pair by pair, between those that have."""
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
) -> Iterator[Change]:
    (one, ones), (other, others) = removed, added
    for x, y in zip(ones, others, strict=False):
        yield from _diff(place.at(x, y), one[x], other[y])
    yield from (Change("removed", (*place.one, x), one[x], None) for x in ones[len(others) :])
    yield from (Change("added", (*place.other, y), None, other[y]) for y in others[len(ones) :])


def _spelled(value: Any) -> str:
    """Give a text that equal values share, and no others: Python says that 1 is true."""
    return json.dumps(value, sort_keys=True)
