"""Whether a trace speaks as all of them do. Owns: the comparison with trace_words.py."""

from collections.abc import Iterable, Mapping
from typing import Any

from uwf_git.agentkit.trace_words import TRACE_WORDS


def find_odd(trace: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """List the events that tell something else than events of their type do."""
    return [event for event in trace if not _is_regular(event)]


def _is_regular(event: Mapping[str, Any]) -> bool:
    words = TRACE_WORDS.get(event.get("type", ""))
    keys = event.keys() - {"type", "time"}
    return words is not None and words.always <= keys <= words.always | words.sometimes
