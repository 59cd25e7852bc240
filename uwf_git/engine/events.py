"""Events: what happens to a thread, for programs that watch. Source: seed 004, the event system.

An event follows from what is recorded, so it has the same id on every machine. Each transition has
exactly one event whose type begins with ``workflow:``, and it is the last.

| transition | events |
|---|---|
| start, fork | workflow:start; of a branch workflow:progress |
| step, answer | node:enter, node:exit, workflow:progress |
| attempt | node:enter, node:exit with an error, workflow:progress (failed: workflow:error) |
| wait | node:enter, workflow:progress |
| split | parallel:start (of a parallel or map), workflow:progress |
| join | parallel:complete (the same), workflow:progress |
| end | workflow:complete; of a branch workflow:progress |
| kill | workflow:error, status ``killed``; of a branch workflow:progress |
| all others | workflow:progress |

``node:enter`` belongs to the commit after which its turn began: it can be sent while the agent
runs, and is the same event when the turn has ended. In a flow ``loop:iteration`` comes before it,
for each loop of which it begins a pass; before a split too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from uwf_git.errors import BadUsage
from uwf_git.model.event_rules import RULES
from uwf_git.model.thread import TransitionRecord

EventType = Literal[
    "workflow:start",
    "workflow:progress",
    "workflow:complete",
    "workflow:error",
    "node:enter",
    "node:exit",
    "loop:iteration",
    "parallel:start",
    "parallel:complete",
]

RUNNING = "running"
"""The status in ``node:enter``: the agent is running. It is never stored."""

ENTER, LAST = "enter", None

_WORDS = "start|progress|complete|error|enter[0-9]{0,2}|exit|loop[0-9]{1,2}|parallel"
_ID = re.compile(rf"([0-9a-f]{{40}})(?:-({_WORDS}))?")

_MOST_LEVELS = 32
"""How deep loops may lie in one another."""


class EventId(NamedTuple):
    commit: str
    word: str | None = LAST
    """Which of the commit's events; None: all of them, or the last."""

    @property
    def is_of_turn(self) -> bool:
        """Whether it tells that a turn has begun after the commit, or a pass with it."""
        return self.word is not None and self.word.startswith(ENTER)

    def list_same_or_before(self) -> set[str]:
        """Return its id, and of a turn that has begun the ids of the events before it."""
        known = {render_event_id(self)}
        if self.is_of_turn:
            last = int((self.word or "").removeprefix(ENTER) or _MOST_LEVELS)
            known |= {f"{self.commit}-{ENTER}{level}" for level in range(1, last + 1)}
        return known


class Node(NamedTuple):
    """What an event is about: a node of a flow, or a role of a graph."""

    id: str
    name: str
    iteration: int
    """The pass of the innermost loop around it, from 1; in a graph which turn of the role it is."""


class LoopPass(NamedTuple):
    node: Node
    level: int
    """How deep the loop lies: 1 at the top."""


class TurnStarted(NamedTuple):
    started_after: str

    record: TransitionRecord

    role: str
    agent: str | None
    started_ms: int
    node: Node
    attempt: int
    """Which attempt at the turn this is, from 1."""

    at: str | None = None

    passes: Sequence[LoopPass] = ()
    """The passes that begin with it, the outermost first."""

    state: Mapping[str, Any] | None = None


class TransitionFacts(NamedTuple):
    commit: str
    record: TransitionRecord
    time_ms: int
    subject: str
    where: Node | None = None
    """The node at which the thread stands; None: at the start."""

    passes: Sequence[LoopPass] = ()
    """Of a split: the passes that begin with it, the outermost first."""

    branches: Sequence[Mapping[str, Any]] | None = None
    """Of a split or join of branches that run at once: what is told of each."""

    is_branch: bool = False
    """Whether the thread is a branch of another thread."""

    turn: TurnStarted | None = None
    """The turn that it ended, or that it began for a person."""

    is_new_turn: bool = True
    """True if no earlier transition has sent ``node:enter`` for that turn."""

    error: str | None = None
    """Why the turn failed, or the thread was killed."""

    has_failed: bool = False
    """True if the thread waits for `uwf thread retry`."""

    reason: str = ""

    more: Mapping[str, Any] = {}
    """Further fields of the payload of its ``workflow:`` event."""

    state: Mapping[str, Any] | None = None


def build_events(happened: TransitionFacts) -> Iterator[dict[str, Any]]:
    """Yield the events of a transition, in order."""
    turn = happened.turn
    if turn is not None and happened.is_new_turn:
        yield from enter_events(turn)
    failed = {} if happened.error is None else {"error": happened.error}
    state = _view_state(happened.state)
    if turn is not None and happened.record.event != "wait":
        payload = _node(turn.node)
        payload["durationMs"] = max(0, happened.time_ms - turn.started_ms)
        if happened.record.files is not None:
            payload["files"] = happened.record.files
        yield _told(happened, "exit", payload | failed | state)
    where = happened.where if turn is None else turn.node
    node = {} if where is None else _node(where)
    for each in happened.passes:
        yield _told(happened, f"loop{each.level}", _node(each.node) | state)
    if happened.branches is not None:
        branches = {"branches": [dict(each) for each in happened.branches]}
        yield _told(happened, "parallel", node | branches | state)
    word = RULES[happened.record.event].tells
    if happened.is_branch and happened.record.event in {"start", "end", "kill"}:
        # A part of the workflow begins or ends there, not the workflow.
        word = "progress"
    elif word == "progress" and happened.has_failed:
        word = "error"
    yield _told(happened, word, node | dict(happened.more) | failed | state)


def enter_events(turn: TurnStarted) -> list[dict[str, Any]]:
    """Return the events that a turn begins: passes of loops, and the turn itself."""
    passes = [
        _begun(turn, f"{ENTER}{each.level}", "loop:iteration", each.node) for each in turn.passes
    ]
    return [*passes, _begun(turn, ENTER, "node:enter", turn.node)]


def _begun(turn: TurnStarted, word: str, kind: str, node: Node) -> dict[str, Any]:
    document = _document(EventId(turn.started_after, word), kind, turn.record, turn.started_ms)
    return document | {
        "payload": _node(node) | _view_state(turn.state),
        "event": None,
        "status": RUNNING,
        "role": turn.role,
        "agent": turn.agent,
        "attempt": turn.attempt,
        "forkedFrom": None,
    }


def render_event_id(event: EventId) -> str:
    return event.commit if event.word is None else f"{event.commit}-{event.word}"


def parse_event_id(text: str) -> EventId:
    found = _ID.fullmatch(text)
    if found is None:
        raise BadUsage(
            f"{text[:60]!r} is not the id of an event",
            code="not-an-event-id",
            hint="an event's id is in its `id`: a full commit, a dash, and a word",
            event=text[:60],
        )
    return EventId(found[1], found[2])


def _told(happened: TransitionFacts, word: str, payload: dict[str, Any]) -> dict[str, Any]:
    end = "start" if happened.record.event == "split" else "complete"
    kinds = {"exit": "node:exit", "parallel": f"parallel:{end}"}
    kind = "loop:iteration" if word.startswith("loop") else kinds.get(word, f"workflow:{word}")
    event = EventId(happened.commit, word)
    document = _document(event, kind, happened.record, happened.time_ms)
    document |= {"payload": payload, "subject": happened.subject}
    if happened.turn is not None:
        document["attempt"] = happened.turn.attempt
    if happened.reason:
        document["reason"] = happened.reason
    return document


def tell_record(record: TransitionRecord) -> dict[str, Any]:
    parent = record.parent_thread
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
        "parentThread": parent,
        **({} if parent is None else {"parentTaskId": parent}),
    }


def _document(event: EventId, kind: str, record: TransitionRecord, time_ms: int) -> dict[str, Any]:
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


def _node(node: Node) -> dict[str, Any]:
    return {"nodeId": node.id, "nodeName": node.name, "iteration": node.iteration}


def _view_state(state: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if state is None else {"state": dict(state)}
