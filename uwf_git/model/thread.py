"""Threads: the words for what happens to them, and their present as a fold over it.

Owns: statuses, events, and ``Present``, the content of now.json.
Knows nothing of: commits, agents, how a move is decided.
Always true: a ``Present`` follows from the StartNode and the events in order alone, so that
anyone can fold again and compare.
"""

from collections.abc import Container, Mapping
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
    "start", "step", "attempt", "wait", "answer", "pause", "resume", "retry", "patch", "amend",
    "poke", "fork", "split", "join", "end", "kill",
]  # fmt: skip

STATUSES: tuple[str, ...] = get_args(Status)
EVENTS: tuple[str, ...] = get_args(Event)
ENDED: frozenset[str] = frozenset({"completed", "killed"})

CONTROLS: frozenset[str] = frozenset({"pause", "resume", "patch", "amend"})
"""Events that leave a thread where it stands: an agent that is at work meanwhile works on."""

STEPS: frozenset[str] = frozenset({"step", "answer"})
"""Events that add a StepNode."""

# Tries that say nothing of the agent's ability: somebody stopped it, or its machine did.
_NO_FAILURE: frozenset[str] = frozenset({"interrupted", "lost"})


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class NotAPresent(ValueError):
    """The document is not the content of a now.json."""


class Waiting(NamedTuple):
    """What a thread waits for before its next step."""

    role: str
    """Whose turn it is."""

    until: int | None = None
    """The end of a limit that its agent hit, in ms since 1970; None waits for a person."""


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

    failures: int = 0
    """How many of them count against the agent's retries; a ``retry`` begins anew."""

    usage: Mapping[str, Any] = _NOTHING
    """What all steps and tries said they had spent."""

    execution_ms: int = 0
    """How long agents were at work on it."""

    limits: Mapping[str, Any] = _NOTHING
    """``maxSteps``, ``maxExecutionTime`` (ms), ``maxTokens``, ``maxCost`` (USD), where set."""

    waiting: Waiting | None = None
    paused_from: Status | None = None
    """The status to which ``resume`` goes back; None if it is not paused."""

    hint: str = ""
    """What somebody says to whoever takes the next step."""

    def after_step(self, node: Mapping[str, Any]) -> "Present":
        """Give the present after the step whose StepNode has the payload *node*."""
        role: str = node["role"]
        return self._spent(node)._replace(
            role=role,
            depth=self.depth + 1,
            state=merge_patch(dict(self.state), dict(node.get("state") or {})),
            visits={**self.visits, role: self.visits.get(role, 0) + 1},
            attempts=0,
            last_attempt=None,
            failures=0,
            waiting=None,
            paused_from=self._still_paused("ready"),
            hint="",
        )

    def after_attempt(self, name: NodeHash, node: Mapping[str, Any], *, then: Status) -> "Present":
        """Give the present after a try failed; *then* is the status that this leads to.

        *node* is the payload of its Attempt node, *name*. A pause goes on.
        """
        until = find_wait_end(node)
        return self._spent(node)._replace(
            attempts=self.attempts + 1,
            last_attempt=name,
            failures=self.failures + counts_as_failure(node),
            waiting=None if until is None else Waiting(node["role"], until),
            paused_from=self._still_paused(then),
        )

    def after_wait(self, role: str) -> "Present":
        """Give the present after it was found to be a person's turn."""
        return self._replace(waiting=Waiting(role))

    def after_pause(self, status: Status) -> "Present":
        """Give the present after a pause in *status*."""
        return self._replace(paused_from=status)

    def after_resume(self) -> "Present":
        """Give the present after a pause has ended, or a wait for the end of a limit."""
        if self.paused_from is not None:
            return self._replace(paused_from=None)
        return self._replace(waiting=None)

    def after_retry(self, hint: str) -> "Present":
        """Give the present when all retries are to be had again."""
        return self._replace(failures=0, hint=hint)

    def after_patch(self, patch: Mapping[str, Any]) -> "Present":
        """Give the present after a JSON merge patch (RFC 7396) of the state."""
        return self._replace(state=merge_patch(dict(self.state), dict(patch)))

    def after_amend(self, amendment: "Amendment") -> "Present":
        """Give the present after the rules have changed for the rest of the thread."""
        limits = merge_patch(dict(self.limits), dict(amendment.limits))
        rebound = self.waiting is not None and self.waiting.role in amendment.binding
        return self._replace(
            workflow=amendment.workflow or self.workflow,
            binding={**self.binding, **amendment.binding},
            limits=limits,
            # Somebody else has its turn now; whether that one can take it shows at the next step.
            waiting=None if rebound else self.waiting,
            paused_from="ready" if rebound and self.paused_from else self.paused_from,
        )

    def find_gone_role(self, roles: Container[str]) -> str | None:
        """Give the role that the thread stands or waits at, and that is not one of *roles*."""
        places = [] if self.role == START else [self.role]
        if self.waiting is not None:
            places.append(self.waiting.role)
        return next((role for role in places if role not in roles), None)

    def status_amended(self, status: Status) -> Status:
        """Give the status of a thread that was *status* before an amendment led to this."""
        return "ready" if status == "waiting" and self.waiting is None else status

    def after_poke(self, before: "Present", hint: str) -> "Present":
        """Give the present when the newest step is to be taken again; *before* was before it.

        What was spent stays spent, and what was changed of the rules stays changed.
        """
        return self._replace(
            role=before.role,
            depth=before.depth,
            state=before.state,
            visits=before.visits,
            attempts=0,
            last_attempt=None,
            failures=0,
            waiting=None,
            hint=hint,
        )

    def after_fork(self) -> "Present":
        """Give the present with which a thread begins that was forked here."""
        return self._replace(failures=0, waiting=None, paused_from=None)

    def status_after(self, status: Status) -> Status:
        """Give the status that an event which leads to *status* leaves: a pause outlasts it."""
        return status if self.paused_from is None else "paused"

    def _spent(self, node: Mapping[str, Any]) -> "Present":
        return self._replace(
            usage=add_usage(dict(self.usage), dict(node.get("usage") or {})),
            execution_ms=self.execution_ms + node.get("durationMs", 0),
        )

    def _still_paused(self, status: Status) -> Status | None:
        return None if self.paused_from is None else status

    def as_document(self) -> dict[str, Any]:
        """Write the content of now.json; what is empty is absent."""
        document: dict[str, Any] = {
            "workflow": reference(self.workflow),
            "agentBinding": {role: reference(agent) for role, agent in self.binding.items()},
            "cursor": {"role": self.role},
            "depth": self.depth,
            "startedAt": self.started_at,
        }
        parts = {
            "state": self.state,
            "visits": self.visits,
            "usage": self.usage,
            "limits": self.limits,
        }
        document |= {name: dict(part) for name, part in parts.items() if part}
        if self.execution_ms:
            document["executionTime"] = self.execution_ms
        if self.last_attempt is not None:
            document["attempts"] = self.attempts
            document["lastAttempt"] = reference(self.last_attempt)
        if self.failures:
            document["failures"] = self.failures
        if self.waiting is not None:
            document["waiting"] = {"role": self.waiting.role}
            if self.waiting.until is not None:
                document["waiting"]["until"] = self.waiting.until
        if self.paused_from is not None:
            document["pausedFrom"] = self.paused_from
        if self.hint:
            document["hint"] = self.hint
        return document


class Amendment(NamedTuple):
    """What changes of a thread's rules; what is not said stays."""

    workflow: NodeHash | None = None
    binding: Mapping[str, NodeHash] = _NOTHING
    """The AgentConfig nodes of the roles that somebody else plays from now on."""

    limits: Mapping[str, Any] = _NOTHING
    """A merge patch of the limits: null takes one away."""


def counts_as_failure(attempt: Mapping[str, Any]) -> bool:
    """Tell whether a failed try counts against its agent's retries."""
    return attempt["error"]["kind"] not in _NO_FAILURE and find_wait_end(attempt) is None


def find_wait_end(attempt: Mapping[str, Any]) -> int | None:
    """Give when the limit ends that a failed try hit, in milliseconds since 1970; None if none."""
    until: int | None = attempt.get("resetAt")
    return until


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
            failures=_natural(document.get("failures", 0)),
            usage=_object(document.get("usage", {})),
            execution_ms=_natural(document.get("executionTime", 0)),
            limits=_object(document.get("limits", {})),
            waiting=_waiting(document.get("waiting")),
            paused_from=_status(document.get("pausedFrom")),
            hint=_text(document.get("hint", "")),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise NotAPresent(f"{type(error).__name__}: {error}") from error


def _target(ref: Any) -> NodeHash:
    target = find_reference(ref) if isinstance(ref, dict) else None
    if target is None:
        raise NotAPresent(f"not a reference: {ref!r:.60}")
    return target


def _waiting(value: Any) -> Waiting | None:
    if value is None:
        return None
    until = value.get("until")
    return Waiting(_text(value["role"]), None if until is None else _natural(until))


def _status(value: Any) -> Status | None:
    if value is not None and value not in STATUSES:
        raise NotAPresent(f"not a status: {value!r:.60}")
    found: Status | None = value
    return found


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
