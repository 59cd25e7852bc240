"""Check a now.json: is it what the event's fold gives from the state before.

A wrong now.json is reported once: the next commit is folded from it as it is.
Format: FORMAT.md, "now.json".
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.model.canonical import canonical
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.event_rules import apply_event
from uwf_git.model.thread import ThreadState
from uwf_git.model.transition_record import TransitionRecord

_MOST_SHOWN = 60


def fold_next(before: Standing, record: TransitionRecord, cause: Cause) -> list[Standing]:
    """Return where the thread may stand after the event of *record*.

    How many retries the agent had is not recorded, nor how many tries; so an attempt has two
    answers, and so has a verdict that rejects the work.
    """
    after: list[Standing] = []
    for each in _list_causes(record, cause):
        standing = apply_event(before, record.event, each)
        if standing not in after:
            after.append(standing)
    return after


def _list_causes(record: TransitionRecord, cause: Cause) -> Iterator[Cause]:
    verdict = cause.verdict
    if verdict == "unknown":
        yield cause._replace(verdict="accepted")
        verdict = "rejected"
    yield cause._replace(verdict=verdict, has_retries=True)
    if record.event == "attempt" or verdict == "rejected":
        yield cause._replace(verdict=verdict, has_retries=False)


def find_lies(document: Mapping[str, Any], expected: ThreadState) -> Iterator[str]:
    """List each part of a now.json that differs from the expected state."""
    right = expected.as_document()
    # Compare texts first: to Python, True == 1. If they differ, it may be only in their order.
    if repr(document) == repr(right):
        return
    right = canonical(right)
    for name in dict.fromkeys([*right, *document]):
        if name not in right or name not in document or _differ(document[name], right[name]):
            yield (
                f"now.json says {name} {_shown(document, name)}, and the history gives "
                f"{_shown(right, name)}"
            )


def _differ(told: Any, right: Any) -> bool:
    return _text(told) != _text(right)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _shown(document: Mapping[str, Any], name: str) -> str:
    if name not in document:
        return "nothing"
    text = json.dumps(document[name], ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"
