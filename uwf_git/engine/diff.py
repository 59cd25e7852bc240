"""Differences: of JSON values by their paths, of texts by lines."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple, TypeAlias

# Alignment: pair the equal elements of two sequences (longest common subsequence).
#
# difflib's time grows with the product of the lengths where elements repeat, as the roles of a
# long thread do. Source: E. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986.

# About a quarter of a second; a longer list of differences need not be minimal.
_MOST_DIFFERENCES = 1000


class Pair(NamedTuple):
    """Two positions with equal elements, or one without a partner."""

    one: int | None
    other: int | None


def align(one: Sequence[Any], other: Sequence[Any]) -> list[Pair]:
    """Return the positions of both sequences in order, with as many equal ones paired as possible.

    Elements of *one* without a partner come before those of *other*. If more than a thousand
    differ, only the common prefix and suffix are paired.
    """
    shortest = min(len(one), len(other))
    start = _count_equal(zip(one, other, strict=False))
    ends = zip(reversed(one), reversed(other), strict=False)
    end = min(_count_equal(ends), shortest - start)
    between = (one[start : len(one) - end], other[start : len(other) - end])
    pairs = [(x, x) for x in range(start)]
    pairs += [(start + x, start + y) for x, y in _match(*between)]
    pairs += [(len(one) - left, len(other) - left) for left in range(end, 0, -1)]
    return list(_with_gaps(pairs, len(one), len(other)))


def _count_equal(pairs: Iterator[tuple[Any, Any]]) -> int:
    return sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _with_gaps(pairs: list[tuple[int, int]], ones: int, others: int) -> Iterator[Pair]:
    x = y = 0
    for at_one, at_other in [*pairs, (ones, others)]:
        yield from (Pair(each, None) for each in range(x, at_one))
        yield from (Pair(None, each) for each in range(y, at_other))
        if at_one < ones:
            yield Pair(at_one, at_other)
        x, y = at_one + 1, at_other + 1


def _match(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the pairs of a longest common subsequence; none if too much differs."""
    if not one or not other:
        return []
    # For each number of differences: how far (in *one*) each diagonal was followed, leftmost first.
    reached: list[list[int]] = [[0]]
    for differences in range(min(len(one) + len(other), _MOST_DIFFERENCES) + 1):
        now: list[int] = []
        for at in range(differences + 1):
            diagonal = 2 * at - differences
            x = _follow(one, other, _step(reached[-1], at)[0], diagonal)
            now.append(x)
            if x >= len(one) and x - diagonal >= len(other):
                return _trace_back(reached, (len(one), len(other)))
        reached.append(now)
    return []


def _step(furthest: list[int], at: int) -> tuple[int, bool]:
    """Return where the next difference leads to, and whether it is an element of *other*."""
    goes_down = at == 0 or (at < len(furthest) and furthest[at - 1] < furthest[at])
    return (furthest[at], True) if goes_down else (furthest[at - 1] + 1, False)


def _follow(one: Sequence[Any], other: Sequence[Any], x: int, diagonal: int) -> int:
    y = x - diagonal
    while x < len(one) and y < len(other) and one[x] == other[y]:
        x, y = x + 1, y + 1
    return x


def _trace_back(reached: list[list[int]], end: tuple[int, int]) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    x, y = end
    for differences in range(len(reached) - 1, -1, -1):
        began, came_down = _step(reached[differences], (x - y + differences) // 2)
        while x > began:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        # The difference itself: an element of either without a partner.
        x, y = (x, y - 1) if came_down else (x - 1, y)
    pairs.reverse()
    return pairs


# Structural diffs: the differences between two JSON values, by their paths.
#
# Removing what was removed (by paths in the one), then setting what was added or changed (by
# paths in the other), in order, gives the other. The order of an object's keys is no difference,
# and true is not 1.

ValuePath: TypeAlias = tuple[str | int, ...]

DiffKind = Literal["added", "removed", "changed"]

# A longer path is unreadable; a deeper value differs as a whole.
_DEEPEST = 50
_PLAIN_KEY = re.compile(r"[^\s.\[\]\"]+")


class ValueChange(NamedTuple):
    kind: DiffKind
    path: ValuePath

    before: Any
    """The value in the one; None if it was added."""

    after: Any
    """The value in the other; None if it was removed."""


class _Place(NamedTuple):
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


# Unified diffs of two texts.
#
# `patch` turns the one into the other, whatever their characters: only a newline ends a line, and
# a missing last one is marked. Source: "Unified Format" in the manual of GNU diff.

_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file"


def diff_texts(one: str, other: str, *, names: tuple[str, str] = ("a", "b")) -> str:
    if one == other:
        return ""
    before, after = _lines(one), _lines(other)
    told = [f"--- {names[0]}\n", f"+++ {names[1]}\n"]
    for hunk in _hunks(align(before, after)):
        told.append(_header(hunk))
        told += (_line(pair, before, after) for pair in hunk)
    return "".join(told)


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _hunks(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Return the runs of pairs that differ, with context lines."""
    start = end = 0
    for at, pair in enumerate(pairs):
        if pair.one is not None and pair.other is not None:
            continue
        if end and at - _CONTEXT > end:
            yield list(pairs[start:end])
            end = 0
        if not end:
            start = max(at - _CONTEXT, 0)
        end = min(at + 1 + _CONTEXT, len(pairs))
    if end:
        yield list(pairs[start:end])


def _header(hunk: Sequence[Pair]) -> str:
    ones = [pair.one for pair in hunk if pair.one is not None]
    others = [pair.other for pair in hunk if pair.other is not None]
    return f"@@ -{_range(ones)} +{_range(others)} @@\n"


def _range(places: Sequence[int]) -> str:
    if not places:
        # One side is empty: hunks have context where there is any.
        return "0,0"
    return f"{places[0] + 1}" if len(places) == 1 else f"{places[0] + 1},{len(places)}"


def _line(pair: Pair, before: Sequence[str], after: Sequence[str]) -> str:
    if pair.one is None:
        line = "+" + after[pair.other or 0]
    else:
        line = (" " if pair.other is not None else "-") + before[pair.one]
    return line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n"
