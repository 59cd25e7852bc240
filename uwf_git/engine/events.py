"""Events: what happens to a thread, as programs that watch want to be told.

Owns: which events a transition is, their names and shape, and their ids.
Knows nothing of: commits, how a transition is read, who listens.
Always true: an event follows from what is recorded, so that every machine gives it the same id;
each transition has exactly one event whose type begins with ``workflow:``, and it is the last.
Source: seed 004, the event system.

| transition | events |
|---|---|
| start, fork | workflow:start |
| step, answer | node:enter, node:exit, workflow:progress |
| attempt | node:enter, node:exit with an error, workflow:progress (failed: workflow:error) |
| wait | node:enter, workflow:progress |
| end | workflow:complete |
| kill | workflow:error, status ``killed`` |
| all others | workflow:progress |

``node:enter`` belongs to the commit after which its turn began: it can be told while the agent is
at work, when nobody knows yet what comes of it, and it is the same event afterwards.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from uwf_git.errors import BadUsage
from uwf_git.model.transition_record import TransitionRecord

EventType = Literal[
    "workflow:start",
    "workflow:progress",
    "workflow:complete",
    "workflow:error",
    "node:enter",
    "node:exit",
]

RUNNING = "running"
"""The status in ``node:enter``: somebody is at work. It is never stored."""

ENTER, LAST = "enter", None

_ID = re.compile(r"([0-9a-f]{40})(?:-(start|progress|complete|error|enter|exit))?")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class NotAnEventId(BadUsage):
    """The text is no id that an event has."""

    code = "not-an-event-id"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:60]!r} is no id of an event",
            hint="an event's id is in its `id`: a commit in full, a dash, and a word",
            event=text[:60],
        )


class EventId(NamedTuple):
    """An event's id, in its parts."""

    commit: str
    word: str | None = LAST
    """Which of the commit's events; None: all of them, or the last."""


class Entered(NamedTuple):
    """A turn that has begun."""

    base: str
    """The commit after which it began."""

    record: TransitionRecord
    """What that commit says."""

    role: str
    agent: str | None
    started_ms: int
    iteration: int
    """The how manieth turn of this role it is."""

    attempt: int
    """Which try it is, counted from 1."""


class Happened(NamedTuple):
    """A transition, with all that its events tell."""

    commit: str
    record: TransitionRecord
    time_ms: int
    subject: str
    where: tuple[str, int] | None = None
    """The role at which the thread stands, and how many turns that has had; None: at its start."""

    turn: Entered | None = None
    """The turn that it ended, or that it began for a person."""

    is_new_turn: bool = True
    """Whether that turn has not been told of by an earlier transition."""

    error: str | None = None
    """Why the turn failed, or the thread was killed."""

    has_failed: bool = False
    """Whether the thread goes on only when somebody says so."""

    reason: str = ""
    """What somebody said of it."""

    more: Mapping[str, Any] = _NOTHING
    """What else belongs into the payload of its ``workflow:`` event."""

    state: Mapping[str, Any] | None = None
    """The thread's state after it, if it was asked for."""


def build_events(happened: Happened) -> list[dict[str, Any]]:
    """Give the events of a transition, in order."""
    return list(_events(happened))


def enter_event(turn: Entered) -> dict[str, Any]:
    """Give the event that a turn begins."""
    document = _document(EventId(turn.base, ENTER), "node:enter", turn.record, turn.started_ms)
    return document | {
        "payload": {**_node(turn.role, turn.iteration)},
        "event": None,
        "status": RUNNING,
        "role": turn.role,
        "agent": turn.agent,
        "attempt": turn.attempt,
        "forkedFrom": None,
    }


def render_event_id(event: EventId) -> str:
    """Write an event's id."""
    return event.commit if event.word is None else f"{event.commit}-{event.word}"


def parse_event_id(text: str) -> EventId:
    """Read an event's id, or the id of a commit.

    Raises:
        NotAnEventId: it is neither.
    """
    found = _ID.fullmatch(text)
    if found is None:
        raise NotAnEventId(text)
    return EventId(found[1], found[2])


def _events(happened: Happened) -> Iterator[dict[str, Any]]:
    turn = happened.turn
    if turn is not None and happened.is_new_turn:
        yield enter_event(turn)
    if turn is not None and happened.record.event != "wait":
        yield _told(happened, "exit", _exit_payload(happened, turn))
    where = happened.where if turn is None else (turn.role, turn.iteration)
    payload = {} if where is None else _node(*where)
    yield _told(happened, _word(happened), {**payload, **_end_payload(happened)})


def _word(happened: Happened) -> str:
    event = happened.record.event
    if event in {"start", "fork"}:
        return "start"
    if event == "end":
        return "complete"
    return "error" if event == "kill" or happened.has_failed else "progress"


def _told(happened: Happened, word: str, payload: dict[str, Any]) -> dict[str, Any]:
    kind: EventType = "node:exit" if word == "exit" else f"workflow:{word}"  # type: ignore[assignment]  # the words are those of the types
    event = EventId(happened.commit, word)
    document = _document(event, kind, happened.record, happened.time_ms)
    document |= {"payload": payload, "subject": happened.subject}
    if happened.turn is not None:
        document["attempt"] = happened.turn.attempt
    if happened.reason:
        document["reason"] = happened.reason
    return document


def tell_record(record: TransitionRecord) -> dict[str, Any]:
    """Give what a commit says, in the words in which every listener is told of it."""
    return {
        "event": record.event,
        "status": record.status,
        "role": record.role,
        "agent": record.agent,
        "attempt": record.attempt,
        "depth": record.depth,
        "node": record.node,
        "workflow": record.workflow,
        "workflowName": record.workflow_name,
        "forkedFrom": record.forked_from,
    }


def _document(
    event: EventId, kind: EventType, record: TransitionRecord, time_ms: int
) -> dict[str, Any]:
    return {
        "id": render_event_id(event),
        "type": kind,
        "taskId": record.thread,
        "timestamp": time_ms,
        "payload": {},
        **tell_record(record),
        "commit": event.commit,
        "subject": None,
        "reason": None,
    }


def _node(role: str, iteration: int) -> dict[str, Any]:
    # In a graph a role is a node, and has no other name.
    return {"nodeId": role, "nodeName": role, "iteration": iteration}


def _exit_payload(happened: Happened, turn: Entered) -> dict[str, Any]:
    payload = _node(turn.role, turn.iteration)
    payload["durationMs"] = max(0, happened.time_ms - turn.started_ms)
    return payload | _end_payload(happened._replace(more=_NOTHING))


def _end_payload(happened: Happened) -> dict[str, Any]:
    payload = dict(happened.more)
    if happened.error is not None:
        payload["error"] = happened.error
    if happened.state is not None:
        payload["state"] = dict(happened.state)
    return payload
