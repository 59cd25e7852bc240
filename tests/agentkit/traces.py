"""The events of a trace, for all adapters: their types, and the keys of each.

A value that the program did not report is null. Each event gets ``time``, in milliseconds since
1970, when it is written.

- ``message``: a text of the agent before its last, which is the answer.
- ``tool``: a call of a tool with its ``input`` and ``output``; ``ok``: it succeeded (false if its
  end was not reported). ``kind`` is the agent's own word for such tools (read, edit, execute),
  ``details`` is whatever else its program reports.
- ``permission``: something that the agent asked for or tried, and whether it was ``allowed``.
- ``turn``: one answer of a model, with its ``usage``; ``way``: how an object was requested.
- ``warning``: something to know that ends nothing.
- ``error``: why a question had no answer; ``kind`` is a ``FailureKind``.
- ``correction``: the agent is asked again because of the ``problem``.
- ``rung``: the rung of the ladder on which the fields were found.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class EventKeys(NamedTuple):
    """The keys of one type of event, besides ``type`` and ``time``."""

    always: frozenset[str]
    sometimes: frozenset[str] = frozenset()


def _keys(always: str, sometimes: str = "") -> EventKeys:
    return EventKeys(frozenset(always.split()), frozenset(sometimes.split()))


EVENT_KEYS = {
    "message": _keys("text"),
    "tool": _keys("name input output ok", "kind durationMs details"),
    "permission": _keys("name allowed", "kind input"),
    "turn": _keys("model usage", "way"),
    "warning": _keys("message"),
    "error": _keys("kind message"),
    "correction": _keys("problem"),
    "rung": _keys("rung"),
}


def find_odd(trace: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """List the events with other keys than events of their type have."""
    return [event for event in trace if not _is_regular(event)]


def _is_regular(event: Mapping[str, Any]) -> bool:
    known = EVENT_KEYS.get(event.get("type", ""))
    keys = event.keys() - {"type", "time"}
    return known is not None and known.always <= keys <= known.always | known.sometimes
