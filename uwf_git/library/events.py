"""Task events as values; ``since`` continues after an event. Source: seed 004, the event system."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from uwf_git.commands.events.commit_events import EventOptions
from uwf_git.commands.events.stream import EventsRequest, EventStream
from uwf_git.debug_log import debug
from uwf_git.engine.events import EventType, parse_event_id
from uwf_git.engine.masking import find_secrets
from uwf_git.errors import StoreDamaged
from uwf_git.library.place import Place
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_thread

_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """An event of a task."""

    id: str
    """The same on every machine; ``events(since=id)`` yields the events after it."""

    type: EventType
    task_id: str
    parent_task_id: str | None
    """The task whose agent started this one, or of which it is a branch."""

    timestamp: int
    """Milliseconds since 1970."""

    payload: Mapping[str, Any]
    """``nodeId``, ``nodeName``, ``iteration``, ``error``, ``state``, ``branches``: what applies."""

    document: Mapping[str, Any]
    """The whole event, as `uwf events` prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Which events to read."""

    task_id: str | None = None
    since: str | None = None
    """The id of an event, or a commit: only the events after it."""

    follow: bool = False
    """Whether to wait for new events: of one task until it ends; without *since* from now on."""

    with_state: bool = False
    """Whether each event's payload has the task's state after it."""


def walk_events(place: Place, query: EventQuery) -> Iterator[TaskEvent]:
    """Yield the events that *query* selects, oldest first.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: there is no such task.
        BadUsage, NoSuchEvent: there is no event *since*.
    """
    stream = _open_stream(place.open(), place, query)
    while True:
        for event in stream.read():
            yield _build_event(event)
        if not query.follow or stream.is_over:
            return
        time.sleep(_PAUSE_S)


def _open_stream(store: Store, place: Place, query: EventQuery) -> EventStream:
    since = None if query.since is None else parse_event_id(query.since)
    thread = None if query.task_id is None else resolve_thread(store, query.task_id)
    request = EventsRequest(thread, since, from_now=query.follow and since is None)
    options = EventOptions(with_state=query.with_state, secrets=find_secrets(place.environ))
    return EventStream(store, request, options, _pass_over)


def _pass_over(damage: StoreDamaged) -> None:
    """Leave out a task that cannot be read; a query of it raises the error."""
    debug("8NKHKKX6", "events of a damaged thread", problem=damage.message)


def _build_event(event: dict[str, Any]) -> TaskEvent:
    return TaskEvent(
        id=event["id"],
        type=event["type"],
        task_id=event["taskId"],
        parent_task_id=event.get("parentTaskId"),
        timestamp=event["timestamp"],
        payload=event["payload"],
        document=MappingProxyType(event),
    )
