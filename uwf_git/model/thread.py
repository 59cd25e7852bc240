"""Threads as values: statuses, events, records, signals and usage."""

import math
import sys
from collections.abc import Callable, Container, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeGuard, TypeVar, get_args

from uwf_git.model.builtin import SIGNAL, find_reference, reference
from uwf_git.model.names import NodeHash, ThreadId, is_thread_id
from uwf_git.model.node import Node, build_node, canonical_number
from uwf_git.model.workflow import START, without_none

# Usage reports of agents, and how they add up.


def add_usage(total: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Return *total* plus *report*: numbers add up, objects by key, other values are replaced."""
    result = dict(total)
    for key, value in report.items():
        known = result.get(key)
        if isinstance(value, dict):
            result[key] = add_usage(known if isinstance(known, dict) else {}, value)
        elif _is_number(value) and _is_number(known):
            result[key] = _sum(known, value)
        else:
            result[key] = value
    return result


AMOUNTS = ("inputTokens", "outputTokens", "costUsd")
"""What limits count in a usage, and views show."""


def find_unfit(usage: Mapping[str, Any]) -> str | None:
    """Return which of the ``AMOUNTS`` in *usage* is negative or no number, or None."""
    for name in AMOUNTS:
        value = usage.get(name)
        if value is not None and not (_is_number(value) and value >= 0):
            return f"{name} is {value!r:.60}, not a number from 0 on"
    return None


def drop_unfit(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return *usage* as it is recorded: without amounts that are unfit, and what is null."""
    return without_none(
        {name: value for name, value in (usage or {}).items() if not find_unfit({name: value})}
    )


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sum(known: float, value: float) -> float:
    """Return the sum as it is read again, at most the largest float: JSON has no infinity."""
    try:
        total = known + value
        if math.isfinite(total):
            return canonical_number(total)
    except OverflowError:
        pass
    return math.copysign(sys.float_info.max, value)


# Threads as values: statuses, events, and ``ThreadState``, the content of now.json.
#
# What each event does to a ``ThreadState`` stands in event_rules.py.

Status = Literal["ready", "waiting", "split", "paused", "failed", "completed", "killed"]
Event = Literal[
    "start", "step", "attempt", "wait", "answer", "pause", "resume", "retry", "patch", "amend",
    "poke", "fork", "split", "join", "end", "kill",
]  # fmt: skip

STATUSES: tuple[str, ...] = get_args(Status)
EVENTS: tuple[str, ...] = get_args(Event)
TASK_WORDS: Mapping[str, str] = MappingProxyType({"ready": "pending", "killed": "cancelled"})
"""Seed 004's words for statuses, where they differ."""

FROM_TASK_WORDS: Mapping[str, str] = {word: status for status, word in TASK_WORDS.items()}

ENDED: frozenset[str] = frozenset({"completed", "killed"})

NOTHING: Mapping[str, Any] = MappingProxyType({})


Part = TypeVar("Part")


class NotAPresent(ValueError):
    """The document is not the content of a now.json."""


class Waiting(NamedTuple):
    """What a thread waits for before its next step."""

    role: str

    until: int | None = None
    """When the agent's limit ends, in ms since 1970; None: the thread waits for a person."""

    at: str | None = None
    """The place of a flow where the person answers."""


class Child(NamedTuple):
    """One branch of a thread that has split: a thread of its own."""

    thread: ThreadId
    start: NodeHash


class Split(NamedTuple):
    at: str
    """The place of the container; in a graph the role."""

    children: tuple[Child, ...]


class Try(NamedTuple):
    """A try at a node whose work another agent verifies: work, checks and verdict."""

    at: str

    number: int = 1
    """Which try it is, from 1; a ``retry`` begins anew."""

    is_verdict: bool = False
    """The work is done, and it is the verifier's turn."""

    reason: NodeHash | None = None
    """The Attempt, or the verifier's StepNode, that ended the try before."""


class ThreadState(NamedTuple):
    """The content of now.json: a thread's state, but for its status and head (trailers)."""

    workflow: NodeHash

    binding: Mapping[str, NodeHash]
    """The AgentConfig node bound to each role."""

    started_at: int
    """Milliseconds since 1970."""

    role: str = START
    """The position in the graph: the role of the newest step."""

    depth: int = 0

    state: Mapping[str, Any] = NOTHING
    visits: Mapping[str, int] = NOTHING
    """The number of steps of each role."""

    attempts: int = 0
    """The number of failed attempts since the newest step."""

    last_attempt: NodeHash | None = None
    """The Attempt node of the newest of them."""

    failures: int = 0
    """How many of them count against the agent's retries; a ``retry`` sets this to 0."""

    usage: Mapping[str, Any] = NOTHING
    """The sum of what steps and attempts reported."""

    execution_ms: int = 0
    """How long agents have worked on the thread."""

    limits: Mapping[str, Any] = NOTHING
    """``maxSteps``, ``maxExecutionTime`` (ms), ``maxTokens``, ``maxCost`` (USD), where set."""

    waiting: Waiting | None = None
    paused_from: Status | None = None
    """The status that ``resume`` restores; None if the thread is not paused."""

    hint: str = ""
    """A message for the agent of the next step, from ``retry`` or ``poke``."""

    at: str | None = None
    """The place of a flow that was finished last; None before its first step, and in graphs."""

    trying: str | None = None
    """The place of a flow at which the attempts failed."""

    split: Split | None = None
    """The branches that are not joined yet."""

    tried: Try | None = None
    """The try that is not over; None before its first work is done."""

    def begin_tries(self, at: str | None) -> "ThreadState":
        """Return the state with the attempts at the place *at* alone: those elsewhere are over."""
        return self if at is None or self.trying in {None, at} else self.without_attempts()

    def without_attempts(self) -> "ThreadState":
        return self._replace(attempts=0, last_attempt=None, failures=0, trying=None)

    def with_all_tries(self) -> "ThreadState":
        tried = None if self.tried is None else self.tried._replace(number=1)
        return self._replace(failures=0, tried=tried)

    def find_gone_role(self, roles: Container[str]) -> str | None:
        """Return the role that the thread stands or waits at, if it is not one of *roles*."""
        waiting = () if self.waiting is None else (self.waiting.role,)
        places = (each for each in (self.role, *waiting) if each != START)
        return next((role for role in places if role not in roles), None)

    def as_document(self) -> dict[str, Any]:
        """Return the content of now.json; empty parts are absent."""
        document: dict[str, Any] = {
            "workflow": reference(self.workflow),
            "agentBinding": {role: reference(agent) for role, agent in self.binding.items()},
            "cursor": {"role": self.role} | ({} if self.at is None else {"at": self.at}),
            "depth": self.depth,
            "startedAt": self.started_at,
        }
        parts = {
            "state": dict(self.state),
            "visits": dict(self.visits),
            "usage": dict(self.usage),
            "limits": dict(self.limits),
            "executionTime": self.execution_ms,
            "attempts": self.attempts,
            "lastAttempt": None if self.last_attempt is None else reference(self.last_attempt),
            "failures": self.failures,
            "trying": self.trying,
            "try": None if self.tried is None else _write_try(self.tried),
            "waiting": None if self.waiting is None else without_none(self.waiting._asdict()),
            "split": None if self.split is None else _write_split(self.split),
            "pausedFrom": self.paused_from,
            "hint": self.hint,
        }
        return document | {name: part for name, part in parts.items() if part}


class Amendment(NamedTuple):
    """A change of a thread's workflow, agents or limits; what is not given stays."""

    workflow: NodeHash | None = None
    binding: Mapping[str, NodeHash] = NOTHING
    """The AgentConfig nodes of the roles that get another agent."""

    limits: Mapping[str, Any] = NOTHING
    """A merge patch of the limits: null removes one."""


def parse_present(document: Any) -> ThreadState:
    """Return the state that the content of a now.json holds, or raise ``NotAPresent``."""
    try:
        return ThreadState(
            workflow=_target(document["workflow"]),
            binding={role: _target(ref) for role, ref in document["agentBinding"].items()},
            started_at=_natural(document["startedAt"]),
            role=_text(document["cursor"]["role"]),
            depth=_natural(document["depth"]),
            state=_object(document.get("state", {})),
            visits={role: _natural(n) for role, n in document.get("visits", {}).items()},
            attempts=_natural(document.get("attempts", 0)),
            last_attempt=_if_any(_target, document.get("lastAttempt")),
            failures=_natural(document.get("failures", 0)),
            usage=_object(document.get("usage", {})),
            execution_ms=_natural(document.get("executionTime", 0)),
            limits=_object(document.get("limits", {})),
            waiting=_if_any(_waiting, document.get("waiting")),
            paused_from=_if_any(_status, document.get("pausedFrom")),
            hint=_text(document.get("hint", "")),
            at=_if_any(_text, document["cursor"].get("at")),
            trying=_if_any(_text, document.get("trying")),
            split=_if_any(_split, document.get("split")),
            tried=_if_any(_try, document.get("try")),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise NotAPresent(f"{type(error).__name__}: {error}") from error


def _if_any(read: Callable[[Any], Part], value: Any) -> Part | None:
    return None if value is None else read(value)


def _target(ref: Any) -> NodeHash:
    target = find_reference(ref) if isinstance(ref, dict) else None
    if target is None:
        raise NotAPresent(f"not a reference: {ref!r:.60}")
    return target


def _waiting(value: Any) -> Waiting:
    until, at = _if_any(_natural, value.get("until")), _if_any(_text, value.get("at"))
    return Waiting(_text(value["role"]), until, at)


def _split(value: Any) -> Split:
    children = tuple(
        Child(_thread(child["thread"]), _target(child["start"])) for child in value["children"]
    )
    return Split(_text(value["at"]), children)


def _write_try(tried: Try) -> dict[str, Any]:
    turn = "verdict" if tried.is_verdict else "work"
    reason = None if tried.reason is None else reference(tried.reason)
    return without_none({"at": tried.at, "number": tried.number, "turn": turn, "reason": reason})


def _write_split(split: Split) -> dict[str, Any]:
    children = [{"thread": thread, "start": reference(start)} for thread, start in split.children]
    return {"at": split.at, "children": children}


def _try(value: Any) -> Try:
    if value["turn"] not in {"work", "verdict"} or not _natural(value["number"]):
        raise NotAPresent(f"not a try: {value!r:.60}")
    reason = _if_any(_target, value.get("reason"))
    return Try(_text(value["at"]), value["number"], value["turn"] == "verdict", reason)


def _thread(value: Any) -> ThreadId:
    if not isinstance(value, str) or not is_thread_id(value):
        raise NotAPresent(f"not the id of a thread: {value!r:.60}")
    return ThreadId(value)


def _status(value: Any) -> Status:
    if value not in STATUSES:
        raise NotAPresent(f"not a status: {value!r:.60}")
    found: Status = value
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


# Signal nodes: what was asked of a thread, with its reason. Who asked is the committer.
#
# Source: seed 004, the runtime control protocol.

Action = Literal["pause", "resume", "retry", "patch", "amend", "append", "poke"]


def keep_reason(text: str) -> str:
    """Return a person's reason as it is recorded: white space alone is no reason."""
    return text if text.strip() else ""


def build_signal(
    action: Action,
    *,
    timestamp: int,
    reason: str = "",
    patch: Mapping[str, Any] | None = None,
    amendment: Amendment | None = None,
) -> Node:
    """Build a Signal node; empty parts are absent."""
    rules = amendment or Amendment()
    parts = {
        "reason": keep_reason(reason),
        "workflow": None if rules.workflow is None else reference(rules.workflow),
        "agentBinding": {role: reference(agent) for role, agent in rules.binding.items()},
        "limits": dict(rules.limits),
    }
    payload: dict[str, Any] = {"action": action}
    payload |= {name: part for name, part in parts.items() if part}
    if patch is not None:
        payload["patch"] = dict(patch)
    return build_node(SIGNAL, payload, timestamp=timestamp)


def read_amendment(payload: Mapping[str, Any]) -> Amendment:
    """Return the change of rules that a Signal's payload holds."""
    return Amendment(
        workflow=find_reference(payload.get("workflow")),
        binding=read_binding(payload.get("agentBinding", {})),
        limits=payload.get("limits", {}),
    )


def read_binding(agents: Mapping[str, Any]) -> dict[str, NodeHash]:
    """Return the AgentConfig nodes by role; what names no node is left out."""
    return without_none({role: find_reference(agent) for role, agent in agents.items()})


# The record of a commit: its trailers as a value. Which event sets which: event_rules.py.

FORMAT = 2
"""The format version that this package writes; its history is in store/FORMAT.md."""


class TransitionRecord(NamedTuple):
    """The trailers of a thread commit: the event, and the thread after it."""

    thread: ThreadId
    event: Event
    status: Status
    node: NodeHash
    """The head of the chain: a StepNode or the StartNode."""

    depth: int
    workflow: NodeHash
    workflow_name: str
    role: str | None = None
    """The role that acted, or the role a person plays."""

    agent: str | None = None
    """The program that played the role; the whole command is in the AgentConfig node."""

    attempt: int | None = None
    """Which attempt failed, from 1."""

    forked_from: ThreadId | None = None
    """The thread that was forked: the parent commit belongs to it."""

    cause: NodeHash | None = None
    """The node that the event is about: a StartNode, a StepNode, an Attempt or a Signal."""

    at: str | None = None
    """The place of a flow at which the role acted, or the person is asked."""

    parent_thread: ThreadId | None = None
    """The thread whose agent started this one; a fork drops it."""

    turn: str | None = None
    """Of an event that leaves a turn under way: the commit after which that turn began."""

    retries_left: bool | None = None
    """Of an attempt: the agent may try again; of a verdict that rejects work: so may the worker."""

    files: str | None = None
    """`<before>..<after>`: the commits of the work directory that hold what the turn changed."""
