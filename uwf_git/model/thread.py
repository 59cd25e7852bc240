"""Threads: the words for what happens to them, and their present as a fold over it.

Owns: statuses, events, and ``Present``, the content of now.json.
Knows nothing of: commits, agents, how a move is decided.
Always true: a ``Present`` follows from the StartNode and the events in order alone, so that
anyone can fold again and compare.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from uwf_git.model.merge_patch import merge_patch
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference, reference
from uwf_git.model.transition import START
from uwf_git.model.usage import add_usage

Status = Literal[
    "ready", "waiting", "paused", "failed", "split", "completed", "killed"
]  # fmt: skip
Event = Literal[
    "start", "step", "attempt", "pause", "resume", "answer", "patch", "amend",
    "fork", "split", "join", "end", "kill",
]  # fmt: skip

STATUSES: tuple[str, ...] = get_args(Status)
EVENTS: tuple[str, ...] = get_args(Event)
ENDED: frozenset[str] = frozenset({"completed", "killed"})


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class NotAPresent(ValueError):
    """The document is not the content of a now.json."""


class Present(NamedTuple):
    """What a thread is now, apart from its status and head (those are trailers of the tip)."""

    workflow: NodeHash
    """The Workflow node in force."""

    binding: Mapping[str, NodeHash]
    """The AgentConfig node bound to each role."""

    started_at: int
    """Milliseconds since 1970."""

    role: str = START
    """The cursor of a graph: the role of the newest step."""

    depth: int = 0
    """How many steps there are."""

    state: Mapping[str, Any] = _NOTHING
    visits: Mapping[str, int] = _NOTHING
    """How many steps each role has taken."""

    attempts: int = 0
    """How many tries have failed since the newest step."""

    last_attempt: NodeHash | None = None
    """The Attempt node of the newest of them."""

    usage: Mapping[str, Any] = _NOTHING

    def after_step(
        self, role: str, *, state: Mapping[str, Any] | None, usage: Mapping[str, Any] | None
    ) -> "Present":
        """Give the present after *role* took a step; *state* is a merge patch."""
        return self._replace(
            role=role,
            depth=self.depth + 1,
            state=merge_patch(dict(self.state), dict(state or {})),
            visits={**self.visits, role: self.visits.get(role, 0) + 1},
            attempts=0,
            last_attempt=None,
            usage=add_usage(dict(self.usage), dict(usage or {})),
        )

    def after_attempt(self, attempt: NodeHash) -> "Present":
        """Give the present after a try failed and *attempt* was recorded."""
        return self._replace(attempts=self.attempts + 1, last_attempt=attempt)

    def as_document(self) -> dict[str, Any]:
        """Write the content of now.json; what is empty is absent."""
        document: dict[str, Any] = {
            "workflow": reference(self.workflow),
            "agentBinding": {role: reference(agent) for role, agent in self.binding.items()},
            "cursor": {"role": self.role},
            "depth": self.depth,
            "startedAt": self.started_at,
        }
        parts = {"state": self.state, "visits": self.visits, "usage": self.usage}
        document |= {name: dict(part) for name, part in parts.items() if part}
        if self.last_attempt is not None:
            document["attempts"] = self.attempts
            document["lastAttempt"] = reference(self.last_attempt)
        return document


def parse_present(document: Any) -> Present:
    """Read the content of a now.json.

    Raises:
        NotAPresent: it is not one.
    """
    try:
        last = document.get("lastAttempt")
        return Present(
            workflow=_target(document["workflow"]),
            binding={role: _target(ref) for role, ref in document["agentBinding"].items()},
            started_at=_natural(document["startedAt"]),
            role=_text(document["cursor"]["role"]),
            depth=_natural(document["depth"]),
            state=_object(document.get("state", {})),
            visits={role: _natural(n) for role, n in document.get("visits", {}).items()},
            attempts=_natural(document.get("attempts", 0)),
            last_attempt=None if last is None else _target(last),
            usage=_object(document.get("usage", {})),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise NotAPresent(f"{type(error).__name__}: {error}") from error


def _target(ref: Any) -> NodeHash:
    target = find_reference(ref) if isinstance(ref, dict) else None
    if target is None:
        raise NotAPresent(f"not a reference: {ref!r:.60}")
    return target


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise NotAPresent(f"not a text: {value!r:.60}")
    return value


def _natural(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise NotAPresent(f"not a natural number: {value!r:.60}")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise NotAPresent(f"not an object: {value!r:.60}")
    return value
