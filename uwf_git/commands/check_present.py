"""Checking a present: is now.json the fold of what happened.

Owns: folding once more, from the present before and the nodes that came in.
Knows nothing of: commits, trees.
Always true: after a present that lies, the next one is held against the lie, so that each lie is
told where it was told first.
Format: FORMAT.md, "now.json".
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.node import Node
from uwf_git.model.references import find_reference
from uwf_git.model.signal import LIMITS, read_amendment
from uwf_git.model.thread import Event, NotAPresent, Present, Status, parse_present
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.node_blob import decode_json

_LEAVE_IT: frozenset[Event] = frozenset({"end", "kill"})
_MOST_SHOWN = 60


class BadPresent(ValueError):
    """A now.json that is none."""


class Now(NamedTuple):
    """A now.json, read."""

    present: Present
    document: Mapping[str, Any]


def read_now(content: bytes) -> Now:
    """Read a now.json.

    Raises:
        BadPresent: it is none.
    """
    try:
        document = canonical(decode_json(content))
        return Now(parse_present(document), document)
    except NotCanonical as error:
        raise BadPresent(error.message) from error
    except RecursionError as error:
        raise BadPresent("nested too deeply") from error
    except (NotAPresent, ValueError) as error:
        raise BadPresent(str(error)) from error


def fold_start(start: Node, workflow: Node) -> Present:
    """Give the present that a thread begins with."""
    payload = start.payload
    binding = {role: find_reference(agent) for role, agent in payload["agentBinding"].items()}
    return Present(
        workflow=workflow.hash,
        binding={role: agent for role, agent in binding.items() if agent is not None},
        started_at=start.timestamp,
        state=payload.get("initialState", workflow.payload.get("initialState")) or {},
        limits={name: payload[name] for name in LIMITS if name in payload},
    )


def fold_attempt(before: Present, said: Present, attempt: Node) -> Present:
    """Give the present after a failed try.

    *said* is what the commit says, and is believed only about how many retries the agent had.
    """
    then = said.paused_from or "ready"
    return before.after_attempt(attempt.hash, attempt.payload, then=then)


def fold_plain(before: Present, record: TransitionRecord) -> Present | None:
    """Give the present after an event of which the record says all; None after any other."""
    if record.event == "wait":
        return None if record.role is None else before.after_wait(record.role)
    if record.event == "fork":
        return before.after_fork()
    return before if record.event in _LEAVE_IT else None


class Steered(NamedTuple):
    """What somebody steered: where the thread was."""

    before: Present
    status: Status
    poked: Present | None = None
    """What it was before its newest step; None if that cannot be read, or does not matter."""


def fold_signal(steered: Steered, event: Event, payload: Mapping[str, Any]) -> Present | None:
    """Give the present after an event to which a Signal with this payload belongs.

    None if it cannot be told.
    """
    before, reason = steered.before, payload.get("reason", "")
    if event == "pause":
        return before.after_pause(steered.status)
    if event == "resume":
        return before.after_resume()
    if event == "retry":
        return before.after_retry(reason)
    if event == "patch":
        return before.after_patch(payload.get("patch", {}))
    if event == "amend":
        return before.after_amend(read_amendment(payload))
    return None if steered.poked is None else before.after_poke(steered.poked, reason)


def find_lies(document: Mapping[str, Any], expected: Present) -> Iterator[str]:
    """Tell each part of a now.json that is not what the history gives."""
    right = expected.as_document()
    # As Python writes them, for it takes true for 1. What differs may differ in its order only.
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
