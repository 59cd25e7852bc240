"""Differences: of JSON values by their paths, of texts by lines."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile, zip_longest
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
            x = _step(reached[-1], at)[0]
            while x < len(one) and x - diagonal < len(other) and one[x] == other[x - diagonal]:
                x += 1
            now.append(x)
            if x >= len(one) and x - diagonal >= len(other):
                return _trace_back(reached, (len(one), len(other)))
        reached.append(now)
    return []


def _step(furthest: list[int], at: int) -> tuple[int, bool]:
    """Return where the next difference leads to, and whether it is an element of *other*."""
    goes_down = at == 0 or (at < len(furthest) and furthest[at - 1] < furthest[at])
    return (furthest[at], True) if goes_down else (furthest[at - 1] + 1, False)


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
    return pairs[::-1]


# Structural diffs: the differences between two JSON values, by their paths.
#
# Removing what was removed (by paths in the one), then setting what was added or changed (by
# paths in the other), in order, gives the other. The order of an object's keys is no difference,
# and true is not 1.

ValuePath: TypeAlias = tuple[str | int, ...]

# A longer path is unreadable; a deeper value differs as a whole.
_DEEPEST = 50


class ValueChange(NamedTuple):
    kind: Literal["added", "removed", "changed"]
    path: ValuePath

    before: Any
    """The value in the one; None if it was added."""

    after: Any
    """The value in the other; None if it was removed."""


def diff_values(one: Any, other: Any) -> list[ValueChange]:
    """Return the changes that turn *one* into *other*; both must be JSON."""
    return list(_diff((), (), one, other))


def _diff(here: ValuePath, there: ValuePath, one: Any, other: Any) -> Iterator[ValueChange]:
    """Yield the changes of a value at *here* in the one to the value at *there* in the other."""
    is_shallow = len(there) < _DEEPEST
    if is_shallow and isinstance(one, dict) and isinstance(other, dict):
        pairs = [(key, key if key in other else None) for key in one]
        pairs += [(None, key) for key in other if key not in one]
    elif is_shallow and isinstance(one, list) and isinstance(other, list):
        pairs = list(_pair_unequal(one, other))
    else:
        pairs = []
        if spelled(one) != spelled(other):
            yield ValueChange("changed", there, one, other)
    for x, y in pairs:
        if y is None:
            yield ValueChange("removed", (*here, x), one[x], None)
        elif x is None:
            yield ValueChange("added", (*there, y), None, other[y])
        else:
            yield from _diff((*here, x), (*there, y), one[x], other[y])


def _pair_unequal(one: Sequence[Any], other: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the positions of the elements between equal elements, pair by pair."""
    pairs = align([*map(spelled, one)], [*map(spelled, other)])
    for is_unequal, run in groupby(pairs, lambda pair: None in pair):
        sides = zip(*run, strict=True) if is_unequal else ()
        yield from zip_longest(*([at for at in side if at is not None] for side in sides))


def spelled(value: Any) -> str:
    """Return a text that only equal values share: to Python 1 equals true."""
    return json.dumps(value, sort_keys=True, default=repr)


# Unified diffs of two texts.
#
# `patch` turns the one into the other, whatever their characters: only a newline ends a line, and
# a missing last one is marked. Source: "Unified Format" in the manual of GNU diff.

_CONTEXT = 3


def diff_texts(one: str, other: str) -> str:
    if one == other:
        return ""
    before, after = _lines(one), _lines(other)
    told = ["--- a\n", "+++ b\n"]
    for hunk in _hunks(align(before, after)):
        ones = _range([pair.one for pair in hunk if pair.one is not None])
        others = _range([pair.other for pair in hunk if pair.other is not None])
        told.append(f"@@ -{ones} +{others} @@\n")
        for x, y in hunk:
            if x is None:
                told.append(f"+{after[y or 0]}")
            else:
                told.append(f"{'-' if y is None else ' '}{before[x]}")
    return "".join(told)


def _lines(text: str) -> list[str]:
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + (
        [f"{last}\n\\ No newline at end of file\n"] if last else []
    )


def _hunks(pairs: list[Pair]) -> Iterator[list[Pair]]:
    """Yield the runs of pairs that differ, with context lines."""
    spans: list[tuple[int, int]] = []
    for at, pair in enumerate(pairs):
        if None in pair:
            start = max(at - _CONTEXT, 0)
            if spans and start <= spans[-1][1]:
                start = spans.pop()[0]
            spans.append((start, at + 1 + _CONTEXT))
    yield from (pairs[start:end] for start, end in spans)


def _range(places: Sequence[int]) -> str:
    if not places:
        # One side is empty: hunks have context where there is any.
        return "0,0"
    return f"{places[0] + 1}" if len(places) == 1 else f"{places[0] + 1},{len(places)}"
