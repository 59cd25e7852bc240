"""Checking a status: does it follow from what happened.

Owns: the status to which each event leads, given what the thread was before.
Knows nothing of: commits, trees. Always true: of a failed try only that much is believed which
nothing here can tell: how many retries its agent had on the machine where it ran.
"""

from collections.abc import Iterator

from uwf_git.model.node import Node
from uwf_git.model.thread import Present, Status, counts_as_failure, find_wait_end
from uwf_git.model.transition_record import TransitionRecord

_READY: frozenset[Status] = frozenset({"ready"})
_TURNS = frozenset({"step", "attempt"})


def check_status(
    before: tuple[TransitionRecord, Present],
    record: TransitionRecord,
    said: Present,
    attempt: Node | None = None,
) -> Iterator[str]:
    """Tell what keeps *record* from having its status; *said* is its now.json, as it is told.

    *attempt* is the failed try of an event of that name.
    """
    was, present = before
    event = record.event
    for_person = present.waiting is not None and present.waiting.until is None
    if event in {*_TURNS, "wait", "end"} and was.status == "waiting" and for_person:
        yield f"Uwf-Event is {event}, and the thread waited for a person"
    if event == "answer" and not for_person:
        yield f"Uwf-Event is {event}, and the thread did not wait for a person"
    then = _find_next(was.status, present, record, attempt)
    if then is None:
        return
    if event in _TURNS and was.status == "paused":
        if said.paused_from not in then:
            yield f"now.json says pausedFrom {said.paused_from!r}, and it was {_or(then)} then"
        then = frozenset({"paused"})
    if record.status not in then:
        yield f"Uwf-Status is {record.status}, and {event} leads to {_or(then)} here"


def _find_next(
    was: Status, present: Present, record: TransitionRecord, attempt: Node | None
) -> frozenset[Status] | None:
    """Give the statuses that may follow, a pause apart; None if nothing more is known of it."""
    if record.event in {"step", "answer"}:
        return _READY
    if record.event == "attempt":
        return None if attempt is None else _after_attempt(attempt)
    if record.event == "resume":
        return _READY if present.paused_from is None else frozenset({present.paused_from})
    if record.event == "patch":
        return frozenset({was})
    return None


def _after_attempt(attempt: Node) -> frozenset[Status]:
    if find_wait_end(attempt.payload) is not None:
        return frozenset({"waiting"})
    return frozenset({"ready", "failed"}) if counts_as_failure(attempt.payload) else _READY


def _or(statuses: frozenset[Status]) -> str:
    return " or ".join(sorted(statuses))
