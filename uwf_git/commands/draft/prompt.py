"""The task of a drafting thread: the wish, the patterns in a line each, and the two nearest whole.

The words of the drafter's role, with the reference of the language, are in workflows/draft.yaml.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from uwf_git.store.workflows.registry import find_shipped

_MARK = "\n\n# Patterns\n\n"
_WHOLE = 2
_WORD = re.compile(r"\w+")


class Pattern(NamedTuple):
    """A shipped workflow to begin from."""

    name: str
    words: tuple[str, ...]
    """Words of wishes that ask for it, or their beginnings, in lower case."""


PATTERNS = (
    Pattern("review-loop", ("review", "improve", "revise", "polite", "critic", "审", "评", "改")),
    Pattern("pipeline", ("then", "first", "finally", "after", "step", "然后", "先", "最后")),
    Pattern("approve", ("approv", "person", "human", "confirm", "批准", "确认", "人工", "同意")),
    Pattern("orchestrate", ("each", "every", "split", "parts", "per ", "每", "拆", "分解")),
    Pattern("fan-out", ("parallel", "at once", "same time", "sides", "并行", "同时", "多个")),
    Pattern("vote", ("vote", "majority", "agree", "decide", "投票", "表决", "多数")),
    Pattern("route", ("kind", "depending", "classif", "sort", "triage", "分类", "类型", "根据")),
    Pattern("until-done", ("until", "again", "repeat", "as long", "直到", "反复", "循环", "重复")),
)
"""The shipped patterns; of those that fit a wish alike the first is the nearest."""


def build_prompt(wish: str) -> str:
    """Return the task of the thread that drafts a workflow for *wish*."""
    lines, texts = [], []
    nearest = find_nearest(wish)
    for pattern in PATTERNS:
        text = _read(pattern.name)
        lines.append(f"- {text.partition(chr(10))[0].removeprefix('# ')}")
        if pattern.name in nearest:
            texts.append(f"```yaml\n{text}```")
    parts = ["\n".join(lines), "The nearest two, whole:", *texts]
    return f"{wish.strip()}{_MARK}" + "\n\n".join(parts) + "\n"


def find_wish(prompt: str) -> str:
    """Return the wish in the task that ``build_prompt`` made."""
    return prompt.rpartition(_MARK)[0] or prompt


def find_nearest(wish: str) -> Sequence[str]:
    """Return the names of the patterns that come nearest to *wish*."""
    folded = wish.casefold()
    words = set(_WORD.findall(folded))
    ranked = sorted(PATTERNS, key=lambda each: -_count(each, folded, words))
    return [each.name for each in ranked[:_WHOLE]]


def _count(pattern: Pattern, folded: str, words: set[str]) -> int:
    return sum(
        word in folded
        if not word.isascii() or " " in word
        else any(each.startswith(word) for each in words)
        for word in pattern.words
    )


def _read(name: str) -> str:
    file = find_shipped(name)
    return "" if file is None else Path(file.path).read_text(encoding="utf-8")
