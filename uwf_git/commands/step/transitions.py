"""Build the commits of a turn: a step, a failed attempt, a person's answer, a wait for a person.

Source: seed 000 section 2.3 (StepNode).
"""

import base64
from typing import Any

from uwf_git.agents.command_line import agent_name
from uwf_git.agents.reply import AgentReply
from uwf_git.commands.caller import Caller
from uwf_git.commands.turn.check_meta import MOST_REPLY_BYTES
from uwf_git.commands.turn.decide import NextTurn
from uwf_git.commands.turn.retries import find_work_retries
from uwf_git.commands.turn.turn import Played, StepFiles, ThreadResult, Turn, build_thread_result
from uwf_git.model.builtin import (
    AGENT_EXEC_CONTEXT,
    ATTEMPT,
    BYTES,
    STEP,
    TEXT,
    TRACE,
)
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.node import Node, build_node
from uwf_git.model.references import reference
from uwf_git.model.thread import Event, drop_unfit
from uwf_git.model.workflow import parse_role, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, advance_head
from uwf_git.store.threads.record import NewCommit, build_next, read_standing, record_next
from uwf_git.store.threads.snapshot import Snapshot


def build_step(turn: Turn, played: Played, reply: AgentReply) -> NewCommit:
    """Build the commit of a turn that succeeded.

    Raises:
        NotCanonical: the reply holds a value that a node cannot hold.
    """
    now = played.started_ms + played.duration_ms
    times = {"startedAt": played.started_ms, "durationMs": played.duration_ms}
    left = _left_nodes(played.left, now) | _kept_nodes(turn, played, now)
    return _build_step(turn, "step", _step_nodes(turn, reply, left, times, now), reply)


def build_answer(
    turn: Turn, reply: AgentReply, *, since_ms: int, now_ms: int, note: str = ""
) -> NewCommit:
    """Build the commit of a person's answer to the question that was open since *since_ms*.

    It has no ``durationMs``: the time that a question is open counts for no limit.
    """
    nodes = _step_nodes(turn, reply, {}, {"startedAt": since_ms}, now_ms)
    return _build_step(turn, "answer", nodes, reply, note)


def _build_step(
    turn: Turn, event: Event, nodes: list[Node], reply: AgentReply, note: str = ""
) -> NewCommit:
    cause = _cause(turn, nodes[0])._replace(text=reply.content, note=note)
    if turn.place is not None:
        state = turn.place.fold(turn.present.state, nodes[0].payload, reply.content)
        # The meta as it is stored, for those who check it.
        cause = _add_verdict(turn, nodes[0].payload["meta"], cause._replace(state=state))
    before = Standing(turn.snapshot.record, turn.present)
    return build_next(before, event, cause, nodes=(*nodes, turn.agent))


def _step_nodes(
    turn: Turn,
    reply: AgentReply,
    left: dict[str, list[Node]],
    times: dict[str, int],
    now_ms: int,
) -> list[Node]:
    """Build the StepNode, and after it the nodes that it refers to."""
    content = _text_nodes(reply.content, reply.raw, now_ms)
    payload: dict[str, Any] = {
        "role": turn.role,
        "meta": reply.meta,
        "content": reference(content[0].hash),
        "agent": reference(turn.agent.hash),
        "prev": reference(turn.snapshot.record.node),
    }
    if len(content) > 1:
        payload["raw"] = reference(content[1].hash)
    for name, nodes in left.items():
        payload[name] = reference(nodes[0].hash)
        content += nodes
    optional = {
        "rung": reply.rung,
        "session": reply.session,
        "state": reply.state,
        "usage": drop_unfit(reply.usage),
    }
    payload |= {name: value for name, value in optional.items() if value}
    return [build_node(STEP, payload | times, timestamp=now_ms), *content]


def _kept_nodes(turn: Turn, played: Played, timestamp: int) -> dict[str, list[Node]]:
    """Build the nodes of the agent's log and environment, by the field that refers to each."""
    found: dict[str, list[Node]] = {}
    log = played.stderr[-turn.keep.log_bytes :] if turn.keep.log_bytes else b""
    if log.strip():
        found["stderr"] = _text_nodes(log.decode(errors="replace"), None, timestamp)
    if played.env:
        env = {"env": dict(played.env)}
        found["execContext"] = [build_node(AGENT_EXEC_CONTEXT, env, timestamp=timestamp)]
    return found


def build_attempt(turn: Turn, played: Played) -> NewCommit:
    """Build the commit of a turn that failed; head and chain stay."""
    now = played.started_ms + played.duration_ms
    error = dict(played.error or {"kind": "unknown", "message": "unknown"})
    payload: dict[str, Any] = {
        "role": turn.role,
        "agent": reference(turn.agent.hash),
        "attempt": turn.attempt,
        "error": error,
    }
    if usage := drop_unfit(played.left.usage):
        payload["usage"] = usage
    if played.left.reset_at is not None:
        payload["resetAt"] = played.left.reset_at
    if played.exit_code is not None:
        payload["exitCode"] = played.exit_code
    nodes: list[Node] = []
    kept: dict[str, str] = {}
    for field, output in (("content", played.stdout), ("stderr", played.stderr)):
        if output:
            # Bytes that are no UTF-8 take three each.
            cut = output.decode(errors="replace").encode()[:MOST_REPLY_BYTES]
            kept[field] = cut.decode(errors="ignore")
            texts = _text_nodes(kept[field], None, now)
            payload[field] = reference(texts[0].hash)
            nodes += texts
    for name, left in _left_nodes(played.left, now).items():
        payload[name] = reference(left[0].hash)
        nodes += left
    payload |= {"startedAt": played.started_ms, "durationMs": played.duration_ms}
    attempt = build_node(ATTEMPT, payload, timestamp=now)
    has_retries = turn.present.failures < turn.retry.retries
    cause = _cause(turn, attempt)._replace(
        has_retries=has_retries,
        gives_up=_find_given_up(turn),
        text=kept.get("stderr", ""),
    )
    before = Standing(turn.snapshot.record, turn.present)
    return build_next(before, "attempt", cause, nodes=(attempt, *nodes, turn.agent))


def _add_verdict(turn: Turn, meta: Any, cause: Cause) -> Cause:
    """Return the *cause* of a step of a flow with what it means for the try that it belongs to."""
    verdict = None if turn.place is None else turn.place.judge(meta)
    if verdict != "rejected" or turn.place is None:
        return cause._replace(verdict=verdict)
    from uwf_git.engine.flow_state import describe_rejection  # noqa: PLC0415 (start-up time; flows only)

    tried = turn.present.tried
    number = 1 if tried is None else tried.number
    return cause._replace(
        verdict=verdict,
        rejection=describe_rejection(turn.role, meta),
        has_retries=number <= find_work_retries(turn.store.config, turn.place),
        gives_up=_find_given_up(turn),
    )


def _find_given_up(turn: Turn) -> str | None:
    return None if turn.place is None else turn.place.find_given_up()


def _cause(turn: Turn, node: Node) -> Cause:
    program = agent_name(turn.agent.payload["command"])
    return Cause(node=node, role=turn.role, agent=program, at=turn.at)


def _left_nodes(left: StepFiles, timestamp: int) -> dict[str, list[Node]]:
    """Build the nodes of an agent's files, by the payload field that refers to the first."""
    found: dict[str, list[Node]] = {}
    if left.prompt:
        found["prompt"] = _text_nodes(left.prompt, None, timestamp)
    if left.trace is not None:
        found["trace"] = [build_node(TRACE, dict(left.trace), timestamp=timestamp)]
    return found


def _text_nodes(text: str, raw: bytes | None, timestamp: int) -> list[Node]:
    """Build the Text node of *text*; if the output was not UTF-8, also its Bytes node."""
    nodes = [build_node(TEXT, text, timestamp=timestamp)]
    if raw is not None:
        encoded = base64.b64encode(raw).decode("ascii")
        nodes.append(build_node(BYTES, encoded, timestamp=timestamp))
    return nodes


def wait_for_person(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], *, turn: NextTurn
) -> ThreadResult:
    """Record that the thread waits for a person to play the role of *turn*.

    Raises:
        HeadMoved: another process moved the head.
    """
    head, snapshot = seen
    workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
    asked = parse_role(snapshot.get_node(workflow.roles[turn.role]))
    text = asked.system_prompt or asked.description
    new = build_next(read_standing(snapshot), "wait", Cause(role=turn.role, at=turn.at, text=text))
    commit = record_next(store, snapshot, new, caller.signing(store))
    advance_head(store, head, commit)
    return build_thread_result(new.record, said=new.said, commit=commit)
