"""Alignment: pair the equal elements of two sequences (longest common subsequence).

difflib's time grows with the product of the lengths where elements repeat, as the roles of a long
thread do. Source: E. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

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
