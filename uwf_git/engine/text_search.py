"""Text search: what is looked for, where it stands in a value, and what stands around it.

Owns: the pattern, the places in JSON that are looked at, excerpts.
Knows nothing of: threads. Always true: an excerpt is one line, and holds no secret whole or in
part: secrets are taken out of the whole text before it is cut.
"""

import json
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from uwf_git.engine.masking import MASK, mask
from uwf_git.engine.structural_diff import Path
from uwf_git.errors import BadUsage

_BEFORE, _AFTER = 40, 80
_ELLIPSIS = "…"


class BadPattern(BadUsage):
    """What is to be looked for is nothing, or no regular expression."""

    code = "bad-pattern"

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"{text[:60]!r} cannot be looked for: {problem}",
            hint="without --regex every character stands for itself",
            pattern=text[:60],
        )


class Found(NamedTuple):
    """What was found in a text."""

    excerpt: str
    """The first hit with what stands around it."""

    hits: int


def compile_pattern(text: str, *, ignore_case: bool, is_regex: bool) -> re.Pattern[str]:
    """Make a pattern of *text*; in a regular expression ^ and $ are ends of lines.

    Raises:
        BadPattern: there is nothing to look for, or it is no regular expression.
    """
    if not text:
        raise BadPattern(text, "there are no words in it")
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else re.NOFLAG)
    try:
        with warnings.catch_warnings():
            # Of what a later Python will understand differently; ours is the one that counts.
            warnings.simplefilter("ignore")
            return re.compile(text if is_regex else re.escape(text), flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadPattern(text, str(error) or type(error).__name__) from error


def find_in(pattern: re.Pattern[str], text: str, secrets: Sequence[str] = ()) -> Found | None:
    """Look for *pattern* in *text*; None if it is not there. A hit of no characters is none."""
    spans = _spans(pattern, text)
    first = next(spans, None)
    if first is None:
        return None
    hits = 1 + sum(1 for _span in spans)
    masked = mask(text, secrets) if secrets else text
    if masked != text:
        # What is found only in a secret is not shown.
        first = next(_spans(pattern, masked), None)
    return Found(MASK if first is None else _excerpt(masked, first), hits)


def walk_texts(value: Any) -> Iterator[tuple[Path, str]]:
    """Give the texts and numbers in a JSON value, with their places, in its order."""
    waiting: list[tuple[Path, Any]] = [((), value)]
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
