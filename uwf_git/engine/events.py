"""Events: what happens to a thread, for programs that watch. Source: seed 004, the event system.

An event follows from what is recorded, so it has the same id on every machine. Each transition has
exactly one event whose type begins with ``workflow:``, and it is the last.

| transition | events |
|---|---|
| start, fork | workflow:start |
| step, answer | node:enter, node:exit, workflow:progress |
| attempt | node:enter, node:exit with an error, workflow:progress (failed: workflow:error) |
| wait | node:enter, workflow:progress |
| end | workflow:complete |
| kill | workflow:error, status ``killed`` |
| all others | workflow:progress |

``node:enter`` belongs to the commit after which its turn began: it can be sent while the agent
runs, and is the same event when the turn has ended.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from uwf_git.errors import BadUsage
from uwf_git.model.event_rules import RULES
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
"""The status in ``node:enter``: the agent is running. It is never stored."""

ENTER, LAST = "enter", None

_ID = re.compile(r"([0-9a-f]{40})(?:-(start|progress|complete|error|enter|exit))?")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class NotAnEventId(BadUsage):
    """The text is not the id of an event."""

    code = "not-an-event-id"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:60]!r} is not the id of an event",
            hint="an event's id is in its `id`: a full commit, a dash, and a word",
            event=text[:60],
        )


class EventId(NamedTuple):
    """The parts of an event's id."""

    commit: str
    word: str | None = LAST
    """Which of the commit's events; None: all of them, or the last."""


class TurnStarted(NamedTuple):
    """A turn that has begun."""

    started_after: str
    """The commit after which it began."""

    record: TransitionRecord
    """The record of that commit."""

    role: str
    agent: str | None
    started_ms: int
    iteration: int
    """Which turn of this role this is, from 1."""

    attempt: int
    """Which attempt at the turn this is, from 1."""


class TransitionFacts(NamedTuple):
    """A transition, with all that its events need."""

    commit: str
    record: TransitionRecord
    time_ms: int
    subject: str
    where: tuple[str, int] | None = None
    """The role at which the thread stands, and its number of turns; None: at the start."""

    turn: TurnStarted | None = None
    """The turn that it ended, or that it began for a person."""

    is_new_turn: bool = True
    """True if no earlier transition has sent ``node:enter`` for that turn."""

    error: str | None = None
    """Why the turn failed, or the thread was killed."""

    has_failed: bool = False
    """True if the thread waits for `uwf thread retry`."""

    reason: str = ""
    """The reason that was given with it."""

    more: Mapping[str, Any] = _NOTHING
    """Further fields of the payload of its ``workflow:`` event."""

    state: Mapping[str, Any] | None = None
    """The thread's state after it, if requested."""


def build_events(happened: TransitionFacts) -> list[dict[str, Any]]:
    """Return the events of a transition, in order."""
    return list(_events(happened))


def enter_event(turn: TurnStarted) -> dict[str, Any]:
    """Return the event that a turn begins."""
    document = _document(
        EventId(turn.started_after, ENTER), "node:enter", turn.record, turn.started_ms
    )
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
    """Format an event's id."""
    return event.commit if event.word is None else f"{event.commit}-{event.word}"


def parse_event_id(text: str) -> EventId:
    """Parse an event's id, or the id of a commit.

    Raises:
        NotAnEventId: it is neither.
    """
    found = _ID.fullmatch(text)
    if found is None:
        raise NotAnEventId(text)
    return EventId(found[1], found[2])


def _events(happened: TransitionFacts) -> Iterator[dict[str, Any]]:
    turn = happened.turn
    if turn is not None and happened.is_new_turn:
        yield enter_event(turn)
    if turn is not None and happened.record.event != "wait":
        yield _told(happened, "exit", _exit_payload(happened, turn))
    where = happened.where if turn is None else (turn.role, turn.iteration)
    payload = {} if where is None else _node(*where)
    yield _told(happened, _word(happened), {**payload, **_end_payload(happened)})


def _word(happened: TransitionFacts) -> str:
    word = RULES[happened.record.event].tells
    return "error" if word == "progress" and happened.has_failed else word


def _told(happened: TransitionFacts, word: str, payload: dict[str, Any]) -> dict[str, Any]:
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
    """Return the facts of a commit as every listener gets them."""
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
        "parentThread": record.parent_thread,
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
    # In a graph a role is a node; it has no other name.
    return {"nodeId": role, "nodeName": role, "iteration": iteration}


def _exit_payload(happened: TransitionFacts, turn: TurnStarted) -> dict[str, Any]:
    payload = _node(turn.role, turn.iteration)
    payload["durationMs"] = max(0, happened.time_ms - turn.started_ms)
    return payload | _end_payload(happened._replace(more=_NOTHING))


def _end_payload(happened: TransitionFacts) -> dict[str, Any]:
    payload = dict(happened.more)
    if happened.error is not None:
        payload["error"] = happened.error
    if happened.state is not None:
        payload["state"] = dict(happened.state)
    return payload
