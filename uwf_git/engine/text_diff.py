"""Unified diffs of two texts.

`patch` turns the one into the other, whatever their characters: only a newline ends a line, and a
missing last one is marked. Source: "Unified Format" in the manual of GNU diff.
"""

from collections.abc import Iterator, Sequence

from uwf_git.engine.alignment import Pair, align

_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file"


def diff_texts(one: str, other: str, *, names: tuple[str, str] = ("a", "b")) -> str:
    """Return the differences as a unified diff; "" if there are none."""
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
