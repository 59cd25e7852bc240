"""Detect a model that repeats a call with the same result.

A call between whose repetitions a file changed does not count.
"""

import json
from dataclasses import dataclass, field

from uwf_git.agentkit.llm.messages import ToolCall

_MOST_ALIKE = 2
_MOST_BLOCKED = 3


@dataclass(slots=True)
class Repeats:
    """The calls since the last change of a file, and their results."""

    blocked: int = 0
    _seen: dict[str, list[int]] = field(default_factory=dict)

    @property
    def is_stuck(self) -> bool:
        """Whether the model repeats blocked calls."""
        return self.blocked >= _MOST_BLOCKED

    def blocks(self, call: ToolCall) -> bool:
        """Return whether *call* gave the same result each time, and count it."""
        given = self._seen.get(_key(call), [])
        if len(given) < _MOST_ALIKE or len(set(given[-_MOST_ALIKE:])) > 1:
            return False
        self.blocked += 1
        return True

    def add(self, call: ToolCall, result: str, *, changed: bool) -> None:
        """Record the *result* of *call*; *changed* says that it changed a file."""
        if changed:
            self._seen.clear()
        self._seen.setdefault(_key(call), []).append(hash(result))


def _key(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True)}"
