"""Task events: what happens to tasks, for programs that watch.

Owns: the value, and when it is looked for another one. Knows nothing of: how events follow from
commits. Always true: after an event there is one rest, the same for every reader, so that whoever
remembers an event's id misses nothing and sees nothing twice. Source: seed 004, the event system.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from uwf_git.commands.event_stream import AllEvents
from uwf_git.commands.event_thread import ThreadEvents
from uwf_git.commands.thread_events import Telling
from uwf_git.debug_log import debug
from uwf_git.engine.events import EventType, parse_event_id
from uwf_git.engine.masking import find_secrets
from uwf_git.errors import StoreDamaged
from uwf_git.library.place import Place
from uwf_git.store.heads import resolve_thread
from uwf_git.store.store import Store

_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """Something that happened to a task."""

    id: str
    """The same everywhere; ``events(since=id)`` gives what came after it."""

    type: EventType
    task_id: str
    timestamp: int
    """Milliseconds since 1970."""

    payload: Mapping[str, Any]
    """``nodeId``, ``nodeName``, ``iteration``, ``error``, ``state``, as far as there is one."""

    document: Mapping[str, Any]
    """All of it, as `uwf events` prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Which events are asked for."""

    task_id: str | None = None
    since: str | None = None
    """The id of an event, or a commit: only what came after it."""

    follow: bool = False
    """Whether to wait for what comes: of one task until it ends; without *since* from now on."""

    with_state: bool = False
    """Whether each event's payload tells the task's state after it."""


def walk_events(place: Place, query: EventQuery) -> Iterator[TaskEvent]:
    """Give the events that are asked for, oldest first.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: there is no such task.
        NotAnEventId, NoSuchEvent: there is nothing to begin after.
    """
    source = _find_source(place.open(), place, query)
    while True:
        for event in source.read():
            yield _tell(event)
        if not query.follow or source.is_over:
            return
        time.sleep(_PAUSE_S)


def _find_source(store: Store, place: Place, query: EventQuery) -> AllEvents | ThreadEvents:
    since = None if query.since is None else parse_event_id(query.since)
    from_now = query.follow and since is None
    telling = Telling(with_state=query.with_state, secrets=find_secrets(place.environ))
    if query.task_id is None:
        return AllEvents(store, telling, _pass_over, since=since, from_now=from_now)
    thread = resolve_thread(store, query.task_id)
    return ThreadEvents(store, thread, telling, since=since, from_now=from_now)


def _pass_over(damage: StoreDamaged) -> None:
    """Leave out a task that cannot be read: the others go on, and a query of it says why."""
    debug("8NKHKKX6", "events of a damaged thread", problem=damage.message)


def _tell(event: dict[str, Any]) -> TaskEvent:
    return TaskEvent(
        id=event["id"],
        type=event["type"],
        task_id=event["taskId"],
        timestamp=event["timestamp"],
        payload=event["payload"],
        document=MappingProxyType(event),
    )
