"""Recording a turn: the StepNode of what succeeded, the Attempt of what did not.

Owns: which nodes a turn leaves. Knows nothing of: how it was played, how refs move.
Source: seed 000 section 2.3 (StepNode); DESIGN 3 (Attempt).
"""

import base64
from typing import Any

from uwf_git.agents.reply import AgentReply
from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.retry_rules import read_retry
from uwf_git.commands.turn import Left, Played, Turn
from uwf_git.engine.subject import describe_step
from uwf_git.model.builtin import ATTEMPT, BUILTIN, BYTES, STEP, TEXT, TRACE
from uwf_git.model.node import Node, build_node
from uwf_git.model.references import reference
from uwf_git.model.thread import Event, Status, counts_as_failure, find_wait_end
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.record import Transition


def step_transition(turn: Turn, played: Played, reply: AgentReply) -> Transition:
    """Build the transition of a turn that succeeded.

    Raises:
        NotCanonical: the reply holds what no node can.
    """
    now = played.started_ms + played.duration_ms
    content = _text_nodes(reply.content, reply.raw, now)
    payload: dict[str, Any] = {
        "role": turn.role,
        "meta": reply.meta,
        "content": reference(content[0].hash),
        "agent": reference(turn.agent.hash),
        "prev": reference(turn.snapshot.record.node),
    }
    if len(content) > 1:
        payload["raw"] = reference(content[1].hash)
    for name, nodes in _left_nodes(played.left, now).items():
        payload[name] = reference(nodes[0].hash)
        content += nodes
    optional = {
        "rung": reply.rung,
        "session": reply.session,
        "state": reply.state,
        "usage": reply.usage,
    }
    payload |= {name: value for name, value in optional.items() if value}
    payload |= {"startedAt": played.started_ms, "durationMs": played.duration_ms}
    step = build_node(STEP, payload, timestamp=now)
    return Transition(
        record=_record(turn, "step", turn.present.status_after("ready"), node=step),
        said=describe_step(reply.meta, reply.content),
        present=turn.present.after_step(payload),
        nodes=(step, *content, turn.agent),
    )


def attempt_transition(turn: Turn, played: Played) -> Transition:
    """Build the transition of a turn that failed; head and chain stay as they were."""
    now = played.started_ms + played.duration_ms
    error = dict(played.error or {"kind": "unknown", "message": "unknown"})
    payload: dict[str, Any] = {
        "role": turn.role,
        "agent": reference(turn.agent.hash),
        "attempt": turn.attempt,
        "error": error,
    }
    if played.left.usage:
        payload["usage"] = dict(played.left.usage)
    if played.left.reset_at is not None:
        payload["resetAt"] = played.left.reset_at
    if played.exit_code is not None:
        payload["exitCode"] = played.exit_code
    nodes: list[Node] = []
    for field, output in (("content", played.stdout), ("stderr", played.stderr)):
        if output:
            texts = _decoded_nodes(output, now)
            payload[field] = reference(texts[0].hash)
            nodes += texts[:1]
    for name, left in _left_nodes(played.left, now).items():
        payload[name] = reference(left[0].hash)
        nodes += left
    payload |= {"startedAt": played.started_ms, "durationMs": played.duration_ms}
    attempt = build_node(ATTEMPT, payload, timestamp=now)
    then = _status_after(turn, payload)
    return Transition(
        record=_record(turn, "attempt", turn.present.status_after(then), node=None),
        said=f"attempt {turn.attempt} failed: {error['message']}",
        present=turn.present.after_attempt(attempt.hash, payload, then=then),
        nodes=(attempt, *nodes, turn.agent),
        body=played.stderr.decode(errors="replace")[-2000:],
    )


def _status_after(turn: Turn, attempt: dict[str, Any]) -> Status:
    """Give what a failed try leads to: another one, a wait, or nothing that goes by itself."""
    if find_wait_end(attempt) is not None:
        return "waiting"
    if not counts_as_failure(attempt):
        return "ready"
    retries = read_retry(turn.store.config, turn.agent.payload).retries
    return "ready" if turn.present.failures < retries else "failed"


def _record(turn: Turn, event: Event, status: Status, *, node: Node | None) -> TransitionRecord:
    before = turn.snapshot.record
    return TransitionRecord(
        thread=before.thread,
        event=event,
        status=status,
        node=before.node if node is None else node.hash,
        depth=before.depth if node is None else before.depth + 1,
        workflow=before.workflow,
        workflow_name=before.workflow_name,
        role=turn.role,
        agent=agent_name(turn.agent.payload["command"]),
        attempt=turn.attempt if node is None else None,
    )


def _left_nodes(left: Left, timestamp: int) -> dict[str, list[Node]]:
    """Build the nodes of what the agent left, by the field that refers to the first."""
    found: dict[str, list[Node]] = {}
    if left.prompt:
        found["prompt"] = _text_nodes(left.prompt, None, timestamp)
    if left.trace is not None:
        # A thread that began before there were traces does not have their type yet.
        trace = build_node(TRACE, dict(left.trace), timestamp=timestamp)
        found["trace"] = [trace, BUILTIN[TRACE]]
    return found


def _decoded_nodes(output: bytes, timestamp: int) -> list[Node]:
    return _text_nodes(output.decode(errors="replace"), None, timestamp)


def _text_nodes(text: str, raw: bytes | None, timestamp: int) -> list[Node]:
    """Build the Text node of *text*, and the Bytes node of what it was when it was no UTF-8."""
    nodes = [build_node(TEXT, text, timestamp=timestamp)]
    if raw is not None:
        encoded = base64.b64encode(raw).decode("ascii")
        nodes.append(build_node(BYTES, encoded, timestamp=timestamp))
    return nodes
