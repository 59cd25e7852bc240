"""Repeats: a model that goes in circles.

Owns: telling when a call has been made too often. Knows nothing of: what a call does.
Always true: a call that gave something else each time is no circle, nor is one between which a
file was changed.
"""

import json
from dataclasses import dataclass, field

from uwf_git.agentkit.model_words import Call

_MOST_ALIKE = 2
_MOST_BLOCKED = 3


@dataclass(slots=True)
class Repeats:
    """The calls since a file was last changed, and what they gave."""

    blocked: int = 0
    _seen: dict[str, list[int]] = field(default_factory=dict)

    @property
    def is_stuck(self) -> bool:
        """Whether telling the model has not helped."""
        return self.blocked >= _MOST_BLOCKED

    def blocks(self, call: Call) -> bool:
        """Tell whether *call* is one of those that gave the same every time, and count it."""
        given = self._seen.get(_key(call), [])
        if len(given) < _MOST_ALIKE or len(set(given[-_MOST_ALIKE:])) > 1:
            return False
        self.blocked += 1
        return True

    def add(self, call: Call, result: str, *, changed: bool) -> None:
        """Remember what *call* gave; *changed* says that the world is another now."""
        if changed:
            self._seen.clear()
        self._seen.setdefault(_key(call), []).append(hash(result))


def _key(call: Call) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True)}"
