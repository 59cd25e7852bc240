"""Text search in JSON values: patterns, places, one-line excerpts that are masked before cut."""

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from uwf_git.engine.diff import ValuePath
from uwf_git.engine.masking import MASK, mask
from uwf_git.errors import BadUsage

_BEFORE, _AFTER = 40, 80
_ELLIPSIS = "…"


def _bad_pattern(text: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{text[:60]!r} cannot be searched for: {problem}",
        code="bad-pattern",
        hint="without --regex every character stands for itself",
        pattern=text[:60],
    )


class Found(NamedTuple):
    excerpt: str
    """The first match and the text around it."""

    hits: int


def compile_pattern(text: str, *, ignore_case: bool, is_regex: bool) -> re.Pattern[str]:
    """Compile *text*; in a regular expression ^ and $ match at line ends."""
    if not text:
        raise _bad_pattern(text, "it is empty")
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else re.NOFLAG)
    try:
        with warnings.catch_warnings():
            # Warnings about what later versions of Python will read differently.
            warnings.simplefilter("ignore")
            return re.compile(text if is_regex else re.escape(text), flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise _bad_pattern(text, str(error) or type(error).__name__) from error


def find_in(pattern: re.Pattern[str], text: str, secrets: Sequence[str] = ()) -> Found | None:
    """Find *pattern* in *text*; None if it does not match. Empty matches do not count."""
    spans = _spans(pattern, text)
    first = next(spans, None)
    if first is None:
        return None
    hits = 1 + sum(1 for _span in spans)
    masked = mask(text, secrets)
    if masked != text:
        # A match within a secret is not shown.
        first = next(_spans(pattern, masked), None)
    return Found(MASK if first is None else _excerpt(masked, first), hits)


def walk_texts(value: Any) -> Iterator[tuple[ValuePath, str]]:
    """Yield the texts and numbers in a JSON value, with their paths, in its order."""
    waiting: list[tuple[ValuePath, Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, dict):
            waiting += [((*path, key), each[key]) for key in reversed(each)]
        elif isinstance(each, list):
            waiting += [((*path, at), each[at]) for at in reversed(range(len(each)))]
        elif isinstance(each, str):
            yield path, each
        elif isinstance(each, int | float) and not isinstance(each, bool):
            yield path, json.dumps(each)


def _spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(text) if match[0])


def _excerpt(text: str, span: tuple[int, int]) -> str:
    start = max(span[0] - _BEFORE, 0)
    end = min(max(span[0] + _AFTER, min(span[1], span[0] + 2 * _AFTER)), len(text))
    line = " ".join(text[start:end].split())
    return f"{_ELLIPSIS if start else ''}{line}{_ELLIPSIS if end < len(text) else ''}"
