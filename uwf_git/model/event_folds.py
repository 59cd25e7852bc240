"""What each event does to a thread's status and state: a function for each row of event_rules.py.

Each returns the status and the now.json after the event. They depend only on the thread before and
on the event's own nodes, so that any reader can fold a history again and compare. Format:
FORMAT.md, "What events do".
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from uwf_git.model.builtin import START, find_reference, reference
from uwf_git.model.limits import LIMITS, render_limit
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.text import cut, first_line
from uwf_git.model.thread import (
    NOTHING,
    Event,
    Split,
    Status,
    ThreadState,
    TransitionRecord,
    Try,
    Waiting,
    add_usage,
    read_amendment,
    read_binding,
)

# JSON merge patch (RFC 7396, https://www.rfc-editor.org/rfc/rfc7396).


def merge_patch(target: Any, patch: Any) -> Any:
    """Return *target* changed by *patch*, neither modified: objects merge, null removes a key."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


# Attempts that were cut short from outside say nothing about the agent.
_NO_FAILURE: frozenset[str] = frozenset({"interrupted", "lost"})


class Standing(NamedTuple):
    """Where a thread stands after one commit: the commit's trailers and its now.json."""

    record: TransitionRecord
    state: ThreadState
    commit: str = ""
    """The id of the commit; only an event that leaves a turn under way names it."""


class Joined(NamedTuple):
    state: Mapping[str, Any]

    usage: Mapping[str, Any] = NOTHING
    """The sum of what they spent."""

    execution_ms: int = 0
    visits: Mapping[str, int] = NOTHING
    """How many steps each role took in them."""

    is_role: bool = False
    """They played a role of a graph, which has no places."""


Verdict: TypeAlias = Literal["due", "accepted", "rejected", "unknown"]
"""The work is done and its verdict due; what the verdict is; a verdict known to its engine."""


class Cause(NamedTuple):
    """What an event brings in; which parts it needs follows from its rule."""

    node: Node | None = None
    """The StepNode, the Attempt or the Signal."""

    role: str | None = None
    """The role that acted, or the role whose turn a person has."""

    agent: str | None = None
    """The program that played the role."""

    has_retries: bool = True
    """Of an attempt: the agent has retries left; of a rejection: there is a try left."""

    text: str = ""
    """Of a step: its content; of an attempt: its log; of a wait: what the person is asked."""

    note: str = ""
    """What the person said who answered, forked or killed."""

    at: str | None = None
    """Of a turn in a flow: its place."""

    state: Mapping[str, Any] | None = None
    """Of a step in a flow: the state after its result."""

    split: Split | None = None

    joined: Joined | None = None
    """Of a join: what the branches came to."""

    gives_up: str | None = None
    """In a flow: the place that is given up when no retries are left."""

    verdict: Verdict | None = None
    """Of a step at a node that is verified: what it means for the try."""

    rejection: str = ""
    """Of a verdict: why the work was rejected, if it was."""

    back_to: Standing | None = None
    """Of a poke: the thread before the step that is taken back."""

    files: str | None = None
    """Of a turn that changed files: the commits of its work directory before and after."""

    thread: ThreadId | None = None

    workflow_name: str | None = None
    """Of an amend: the name of the workflow that is in force afterwards."""

    @property
    def payload(self) -> Mapping[str, Any]:
        """The payload of the node; empty if the event has none."""
        payload: Mapping[str, Any] = {} if self.node is None else self.node.payload
        return payload


After: TypeAlias = tuple[Status, ThreadState]

ERROR = "error"
"""The member of a flow's state that holds why a place was given up."""


def build_start(
    workflow: NodeHash,
    prompt: str,
    binding: Mapping[str, NodeHash],
    more: Mapping[str, Any],
    *,
    timestamp: int,
) -> Node:
    """Build a StartNode; *more* is what not every thread begins with."""
    payload = {
        "workflow": reference(workflow),
        "prompt": prompt,
        "agentBinding": {role: reference(agent) for role, agent in binding.items()},
        **more,
    }
    return build_node(START, payload, timestamp=timestamp)


def begin_state(start: Node, initial_state: Mapping[str, Any] | None) -> ThreadState:
    """Return the state of a new thread of the StartNode *start*."""
    payload = start.payload
    target = find_reference(payload["workflow"])
    if target is None:
        raise ValueError(f"StartNode {start.hash} names no workflow")
    return ThreadState(
        workflow=target,
        binding=read_binding(payload["agentBinding"]),
        started_at=start.timestamp,
        state=payload.get("initialState", initial_state) or {},
        limits={name: payload[name] for name in LIMITS if name in payload},
    )


def after_step(before: Standing, cause: Cause) -> After:
    """Add the step: its state patch and usage; attempts, hint and wait end."""
    state, step = before.state, cause.payload
    role: str = step["role"]
    spent = _add_spent(state, step).without_attempts()
    spent = spent._replace(
        role=role,
        depth=state.depth + 1,
        state=merge_patch(dict(state.state), dict(step.get("state") or {}))
        if cause.state is None
        else cause.state,
        visits={**state.visits, role: state.visits.get(role, 0) + 1},
        waiting=None,
        hint="",
    )
    if cause.verdict in {"due", "rejected"}:
        return _after_try(before.state.begin_tries(cause.at), cause, spent)
    return _within_pause("ready", spent._replace(at=cause.at, tried=None))


def _after_try(before: ThreadState, cause: Cause, after: ThreadState) -> After:
    """Go on to the verdict, or after a rejection back to the work; the place is not finished."""
    at, tried = cause.at or "", before.tried
    if cause.verdict == "due":
        reason = before.last_attempt if tried is None and before.failures else None
        begun = Try(at, before.failures + 1, is_verdict=True, reason=reason)
        if tried is not None:
            begun = begun._replace(reason=tried.reason)
        return _within_pause("ready", after._replace(tried=begun))
    number = 1 if tried is None else tried.number
    reason = None if cause.node is None else cause.node.hash
    again = after._replace(
        failures=number, trying=at, tried=Try(at, number + 1, is_verdict=False, reason=reason)
    )
    if not cause.has_retries and cause.gives_up is not None:
        return _within_pause("ready", _give_up(again, cause.gives_up, cause.rejection))
    return _within_pause("ready" if cause.has_retries else "failed", again)


def after_attempt(before: Standing, cause: Cause) -> After:
    """Count the attempt; without retries the thread fails or gives up a place."""
    state, attempt = before.state.begin_tries(cause.at), cause.payload
    had_failed = (state.paused_from or before.record.status) == "failed"
    until = find_wait_end(attempt)
    is_failure = counts_as_failure(attempt)
    tried = _add_spent(state, attempt)._replace(
        attempts=state.attempts + 1,
        last_attempt=None if cause.node is None else cause.node.hash,
        failures=state.failures + is_failure,
        waiting=None if until is None else Waiting(attempt["role"], until),
        trying=cause.at,
        tried=_after_failure(state, cause) if is_failure else state.tried,
    )
    if until is not None:
        return _within_pause("waiting", tried)
    if is_failure and not cause.has_retries and cause.gives_up is not None:
        return _within_pause("ready", _give_up(tried, cause.gives_up, attempt["error"]["message"]))
    has_failed = had_failed or (is_failure and not cause.has_retries)
    return _within_pause("failed" if has_failed else "ready", tried)


def _after_failure(state: ThreadState, cause: Cause) -> Try | None:
    """Return the try after work that failed: the next one. A verifier's failure ends none."""
    tried = state.tried
    if tried is None or tried.is_verdict or tried.at != cause.at or cause.node is None:
        return tried
    return tried._replace(number=state.failures + 2, reason=cause.node.hash)


def after_wait(before: Standing, cause: Cause) -> After:
    waiting = Waiting(cause.role or "", at=cause.at)
    return "waiting", before.state._replace(waiting=waiting)


def after_pause(before: Standing, _cause: Cause) -> After:
    """Remember the status for ``resume``."""
    return "paused", before.state._replace(paused_from=before.record.status)


def after_resume(before: Standing, _cause: Cause) -> After:
    """End the pause; of a thread that is not paused, the wait for the end of a limit."""
    state = before.state
    if state.paused_from is None:
        return "ready", state._replace(waiting=None)
    return state.paused_from, state._replace(paused_from=None)


def after_retry(before: Standing, cause: Cause) -> After:
    """Allow all retries again; the reason is the hint for the next attempt."""
    hint = cause.payload.get("reason", "")
    return "ready", before.state.with_all_tries()._replace(hint=hint)


def after_patch(before: Standing, cause: Cause) -> After:
    """Apply the JSON merge patch (RFC 7396) to the state."""
    patch = cause.payload.get("patch", {})
    state = merge_patch(dict(before.state.state), dict(patch))
    return before.record.status, before.state._replace(state=state)


def after_amend(before: Standing, cause: Cause) -> After:
    """Change workflow, agents and limits; a waiting role that gets another agent is ready."""
    state, amendment = before.state, read_amendment(cause.payload)
    is_rebound = state.waiting is not None and state.waiting.role in amendment.binding
    amended = state._replace(
        workflow=amendment.workflow or state.workflow,
        binding={**state.binding, **amendment.binding},
        limits=merge_patch(dict(state.limits), dict(amendment.limits)),
        waiting=None if is_rebound else state.waiting,
        paused_from="ready" if is_rebound and state.paused_from else state.paused_from,
    )
    is_waiting = before.record.status == "waiting"
    return "ready" if is_waiting and amended.waiting is None else before.record.status, amended


def after_poke(before: Standing, cause: Cause) -> After:
    """Go back to before the newest step; usage and changed rules stay."""
    if cause.back_to is None:
        raise ValueError("a poke needs the thread before the step")  # a bug of the caller
    old = cause.back_to.state
    return "ready", before.state.without_attempts()._replace(
        role=old.role,
        depth=old.depth,
        state=old.state,
        visits=old.visits,
        waiting=None,
        hint=cause.payload.get("reason", ""),
        at=old.at,
        tried=old.with_all_tries().tried,
    )


def after_fork(before: Standing, _cause: Cause) -> After:
    """Begin a new thread without the failures, wait, pause and branches of the old one."""
    fresh = before.state.with_all_tries()
    return "ready", fresh._replace(waiting=None, paused_from=None, split=None)


def after_split(before: Standing, cause: Cause) -> After:
    """Go on in branches; tries at another place are over."""
    state = before.state.without_attempts()
    return "split", state._replace(split=cause.split, tried=None, hint="")


def after_join(before: Standing, cause: Cause) -> After:
    """Add what the branches came to, as one step; the container is the place finished last."""
    state, joined, split = before.state, cause.joined, before.state.split
    if joined is None or split is None:
        raise ValueError("a join needs its branches")  # a bug of the caller
    visits = {
        role: state.visits.get(role, 0) + joined.visits.get(role, 0)
        for role in dict.fromkeys([*state.visits, *joined.visits])
    }
    return "ready", state._replace(
        role=cause.payload["role"],
        depth=state.depth + 1,
        state=joined.state,
        visits=visits,
        usage=add_usage(dict(state.usage), dict(joined.usage)),
        execution_ms=state.execution_ms + joined.execution_ms,
        split=None,
        at=None if joined.is_role else cause.at,
    )


def counts_as_failure(attempt: Mapping[str, Any]) -> bool:
    """Check whether a failed attempt counts against its agent's retries."""
    return attempt["error"]["kind"] not in _NO_FAILURE and find_wait_end(attempt) is None


def find_wait_end(attempt: Mapping[str, Any]) -> int | None:
    """Return when the limit that an attempt hit ends, in ms since 1970; None if it hit none."""
    until: int | None = attempt.get("resetAt")
    return until


def _give_up(state: ThreadState, place: str, message: str) -> ThreadState:
    """Leave *place* as if it had been done; ``lastAttempt`` still names why."""
    return state._replace(
        at=place,
        state={**state.state, ERROR: message},
        attempts=0,
        failures=0,
        trying=None,
        tried=None,
        hint="",
    )


def _add_spent(state: ThreadState, node: Mapping[str, Any]) -> ThreadState:
    return state._replace(
        usage=add_usage(dict(state.usage), dict(node.get("usage") or {})),
        execution_ms=state.execution_ms + node.get("durationMs", 0),
    )


def _within_pause(status: Status, state: ThreadState) -> After:
    """Return what a turn leads to: in a paused thread *status* is what ``resume`` restores."""
    if state.paused_from is None:
        return status, state
    return "paused", state._replace(paused_from=status)


# The words of a thread's commits: what each event says in its subject and its body.
#
# Writers and `uwf verify` both ask here, so a commit can be made again byte for byte. Nothing
# depends on the Unicode tables of the Python that runs. Format: FORMAT.md, "Words".

LONGEST_QUOTE = 2_000
"""The most of a text that a body quotes, in characters."""

# Fields in which roles usually summarize themselves, most telling first.
_TELLING = (
    "summary", "title", "message", "verdict", "reason", "why", "feedback", "decision", "status",
    "result",
)  # fmt: skip

# Controls, spaces but U+0020, format characters, surrogates, private use, and U+FFFE and U+FFFF: a
# table of the format, not of Python's Unicode. A string: most commands meet ASCII alone.
_UNPRINTABLE = (
    "[\\x00-\\x1f\\x7f-\\xa0\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u1680"
    "\\u180e\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u3000\\ud800-\\uf8ff\\ufdd0-\\ufdef"
    "\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\U000110bd\\U000110cd\\U00013430-\\U0001343f"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e007f\\U000f0000-\\U0010ffff]"
)


class Words(NamedTuple):
    """What a commit says, before it is cut and cleaned."""

    said: str
    """The subject, after the role or the event."""

    body: str = ""


def describe_event(before: Standing, event: Event, cause: Cause) -> Words:
    """Return the words of *event*, which follows *before*; splits and joins are below."""
    return _WORDS[event](before, cause)


def describe_start(prompt: str) -> Words:
    """Return the words of the first commit of a thread."""
    return Words(first_line(prompt))


def describe_split(label: str, branches: Sequence[tuple[str, str]]) -> Words:
    """Return the words of a split into *branches*: their labels and threads."""
    lines = [f"{number} {name} {thread}" for number, (name, thread) in enumerate(branches)]
    return Words(f"{label} into {len(branches)}", "\n".join(lines))


def describe_branch(number: int, label: str) -> Words:
    """Return the words of the first commit of a branch."""
    return Words(f"branch {number}, {label}")


def describe_join(label: str, statuses: Sequence[str]) -> Words:
    counts = [f"{statuses.count(each)} {each}" for each in ("completed", "killed")]
    told = ", ".join(count for count in counts if not count.startswith("0 "))
    return Words(f"{label}: {told or 'no branch'}")


def _step(_before: Standing, cause: Cause) -> Words:
    return Words(describe_step(cause.payload["meta"], cause.text), cause.note)


def _attempt(_before: Standing, cause: Cause) -> Words:
    number, error = cause.payload["attempt"], cause.payload["error"]
    return Words(f"attempt {number} failed: {error['message']}", cause.text[-LONGEST_QUOTE:])


def _fork(before: Standing, cause: Cause) -> Words:
    steps = count_steps(before.record.depth)
    return Words(f"from {before.record.thread} after {steps}", cause.note)


def _kill(before: Standing, cause: Cause) -> Words:
    return Words(f"killed after {count_steps(before.record.depth)}", cause.note)


def _signalled(
    describe: Callable[[Standing, Mapping[str, Any]], str],
) -> Callable[[Standing, Cause], Words]:
    """Return the words of an event with a Signal: its reason, else what *describe* says."""

    def describe_signal(before: Standing, cause: Cause) -> Words:
        reason: str = cause.payload.get("reason", "")
        return Words(first_line(reason) or first_line(describe(before, cause.payload)), reason)

    return describe_signal


def _describe_amendment(_before: Standing, signal: Mapping[str, Any], digits: int = 6) -> str:
    amendment = read_amendment(signal)
    to = "adds to the workflow, now" if signal["action"] == "append" else "workflow"
    parts = [] if amendment.workflow is None else [f"{to} {amendment.workflow}"]
    if amendment.binding:
        parts.append(f"agent of {', '.join(amendment.binding)}")
    limits = amendment.limits.items()
    parts += [f"{name} is {render_limit(name, value, digits)}" for name, value in limits]
    return "; ".join(parts)


# More digits than a number has.
describe_unrounded = _signalled(partial(_describe_amendment, digits=400))
"""The words of an ``amend`` as older versions of uwf wrote them."""


_WORDS: Mapping[Event, Callable[[Standing, Cause], Words]] = {
    "step": _step,
    "answer": _step,
    "attempt": _attempt,
    "wait": lambda _before, cause: Words("waits for a person", cause.text[:LONGEST_QUOTE]),
    "pause": _signalled(lambda _before, _signal: "paused"),
    "resume": _signalled(lambda _before, _signal: "resumed"),
    "retry": _signalled(lambda _before, _signal: "may try again"),
    "patch": _signalled(lambda _before, signal: f"changed {', '.join(signal.get('patch', {}))}"),
    "amend": _signalled(_describe_amendment),
    "poke": _signalled(lambda before, _signal: f"{before.state.role} takes its step again"),
    "fork": _fork,
    "end": lambda before, _cause: Words(f"completed after {count_steps(before.record.depth)}"),
    "kill": _kill,
}


def describe_step(meta: Any, content: str) -> str:
    """Return one line about a result: a summary in its meta, or the beginning of its text."""
    if summary := _find_summary(meta):
        return summary
    line = first_line(content)
    if line and not line.startswith(("```", "---", "{", "[", "<")):
        return line
    return cut(json.dumps(meta, ensure_ascii=False, separators=(", ", ": ")), 200)


def needs_text(event: Event, payload: Mapping[str, Any]) -> bool:
    """Check whether the words of a step or an attempt quote its content or its log."""
    return event == "attempt" or not _find_summary(payload["meta"])


def _find_summary(meta: Any) -> str:
    told = (meta.get(field) for field in _TELLING) if isinstance(meta, dict) else ()
    lines = (first_line(value) for value in told if isinstance(value, str))
    return next(filter(None, lines), "")


def one_line(text: str) -> str:
    """Return *text* as one printable line, as a subject must be."""
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """Return *text* with a space for each character that cannot be printed."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_UNPRINTABLE, " ", text)


def count_attempts(number: int) -> str:
    return f"{number} failed {'attempt' if number == 1 else 'attempts'}"


def count_steps(number: int) -> str:
    """Format a number of steps: `1 step`, `2 steps`."""
    return f"{number} {'step' if number == 1 else 'steps'}"


def describe_files(files: Mapping[str, Any] | None) -> str:
    """Return how many files and lines a step changed: ``4 files +12 -180``; "" for no file."""
    if files is None:
        return ""
    if "changed" not in files:
        return "changed files"
    number = "1 file" if files["changed"] == 1 else f"{files['changed']} files"
    return f"{number} +{files['added']} -{files['removed']}"
