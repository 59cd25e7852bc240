"""Record what came of a turn: as a step, a failed attempt, an answer or a wait."""

import base64
import shlex
from typing import Any

from uwf_git.agents.command_line import AgentReply, ProgramMissing, agent_name
from uwf_git.commands.agent_run.runs import forget_run
from uwf_git.commands.caller import Caller
from uwf_git.commands.turn.choose_agent import tell_adapter
from uwf_git.commands.turn.flow import find_turn_place, find_work_retries
from uwf_git.commands.turn.next_move import NextTurn
from uwf_git.commands.turn.turn import (
    LIMIT_KIND,
    MOST_REPLY_BYTES,
    Played,
    StepFiles,
    ThreadResult,
    Turn,
    build_thread_result,
    check_state,
    refuse_answer,
)
from uwf_git.engine.flow_state import describe_rejection, find_reason
from uwf_git.errors import AgentFailed, Conflict
from uwf_git.model.builtin import AGENT_EXEC_CONTEXT, ATTEMPT, BYTES, STEP, TEXT, TRACE, reference
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.event_rules import CONTROLS
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.thread import Event, Status, drop_unfit
from uwf_git.store.git.program import agent_identity
from uwf_git.store.nodes import NodeCollision
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, HeadMoved, advance_head, find_head
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    build_next,
    get_role,
    get_workflow,
    preserve_commit,
    read_snapshot,
    read_standing,
    record_next,
    walk_history,
)
from uwf_git.store.threads.local_files import find_kill_request, is_being_stopped

# Build the commits of a turn: a step, a failed attempt, a person's answer, a wait for a person.
#
# Source: seed 000 section 2.3 (StepNode).


def build_answer(
    turn: Turn,
    reply: AgentReply,
    *,
    since_ms: int,
    now_ms: int,
    note: str = "",
    files: str | None = None,
) -> NewCommit:
    """Build the commit of an answer; open time counts for no limit (no ``durationMs``)."""
    nodes = _step_nodes(turn, reply, {}, {"startedAt": since_ms}, now_ms)
    return _build_step(turn, "answer", nodes, reply, note=note, files=files)


def _build_step(
    turn: Turn,
    event: Event,
    nodes: list[Node],
    reply: AgentReply,
    *,
    note: str = "",
    files: str | None = None,
) -> NewCommit:
    cause = _cause(turn, nodes[0], files)._replace(text=reply.content, note=note)
    if turn.place is not None:
        state = turn.place.fold(turn.present.state, nodes[0].payload, reply.content)
        # The meta as it is stored, for those who check it.
        cause = _add_verdict(turn, nodes[0].payload["meta"], cause._replace(state=state))
    before = Standing(turn.snapshot.record, turn.present)
    return build_next(before, event, cause, nodes=(*nodes, turn.agent))


def _step_nodes(
    turn: Turn, reply: AgentReply, left: dict[str, list[Node]], times: dict[str, int], now_ms: int
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
    cause = _cause(turn, attempt, played.files)._replace(
        has_retries=has_retries, gives_up=_find_given_up(turn), text=kept.get("stderr", "")
    )
    before = Standing(turn.snapshot.record, turn.present)
    return build_next(before, "attempt", cause, nodes=(attempt, *nodes, turn.agent))


def _add_verdict(turn: Turn, meta: Any, cause: Cause) -> Cause:
    """Return the *cause* of a step of a flow with what it means for the try that it belongs to."""
    verdict = None if turn.place is None else turn.place.judge(meta)
    if verdict != "rejected" or turn.place is None:
        return cause._replace(verdict=verdict)
    return cause._replace(
        verdict=verdict,
        rejection=describe_rejection(turn.role, meta),
        has_retries=_count_tries(turn) <= find_work_retries(turn.store.config, turn.place),
        gives_up=_find_given_up(turn),
    )


def _count_tries(turn: Turn) -> int:
    return 1 if turn.present.tried is None else turn.present.tried.number


def _find_given_up(turn: Turn) -> str | None:
    return None if turn.place is None else turn.place.find_given_up()


def _cause(turn: Turn, node: Node, files: str | None) -> Cause:
    program = agent_name(turn.agent.payload["command"])
    return Cause(node=node, role=turn.role, agent=program, at=turn.at, files=files)


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
    """Record that the thread waits for a person to play the role of *turn*."""
    snapshot = seen[1]
    workflow = get_workflow(snapshot, snapshot.record.workflow)
    asked = get_role(snapshot, workflow.roles[turn.role])
    text = asked.system_prompt or asked.description
    new = build_next(read_standing(snapshot), "wait", Cause(role=turn.role, at=turn.at, text=text))
    return record_at(store, caller, seen, new)


def record_at(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], new: NewCommit
) -> ThreadResult:
    """Record *new* after the head that was *seen*, and move the head there."""
    head, snapshot = seen
    commit = record_next(store, snapshot, new, caller.signing(store))
    advance_head(store, head, commit)
    return build_thread_result(new.record, said=new.said, commit=commit)


# Record a played turn: write its commit, move the ref, forget its run directory.
#
# If the thread was only steered meanwhile (pause, patch), the turn is recorded on top of that. If
# it moved otherwise, a finished step is kept as a commit of its own.

_SHORT = 12
_READ = "; `uwf thread read {thread}` has its output"
_NEXT = {
    "ready": f"`uwf thread step {{thread}}` tries again{_READ}",
    "given up": "its place in the flow was given up (onError: continue): `uwf thread step "
    f"{{thread}}` goes on without it{_READ}",
    "failed": "`uwf thread step {thread}` tries again, and `uwf thread retry {thread}` lets a run "
    f"go on{_READ}",
    "waiting": "it can be tried again when the limit ends: `uwf thread run {thread} --wait` sleeps "
    "until then",
    "paused": "the thread is paused: `uwf thread resume {thread}` lets it go on",
    "ending": "the thread is being ended: `uwf thread show {thread}` tells by whom, and "
    "`uwf thread fork {thread}` continues it in a new thread",
}


class TurnFailed(AgentFailed):
    """The agent failed, or its output does not fit the role."""

    code = "turn-failed"
    stepped: ThreadResult | None = None
    """The step that was recorded, if the agent itself did its part."""

    def __init__(
        self,
        turn: Turn,
        played: Played,
        status: Status,
        *,
        is_given_up: bool = False,
        recorded: Oid | None = None,
    ) -> None:
        error = dict(played.error or {})
        command = turn.agent.payload["command"]
        self.reason = str(error.get("message"))
        # The thread goes on after the place of the flow that was given up.
        self.is_given_up = is_given_up
        cause = None if played.is_stopped else tell_adapter(command) or played.hint
        if error.get("kind") == ProgramMissing.code:
            change = shlex.quote(f"{turn.role}=CMD")
            cause = (
                f"{cause}; `uwf thread amend {turn.thread} --agent {change}` names another agent"
            )
        is_ending = played.is_stopped and (
            is_being_stopped(turn.store, turn.thread)
            or find_kill_request(turn.store, turn.thread) is not None
        )
        after = "given up" if is_given_up else status
        told = _NEXT["ending" if is_ending else after]
        if error.get("kind") == NodeCollision.code:
            told = told.removesuffix(_READ)
        told = told.format(thread=turn.thread)
        if recorded is not None and played.files is not None:
            changed = recorded[:_SHORT]
            told += (
                f"; it changed files: `uwf thread files {turn.thread} {changed}` shows them, `uwf "
                f"thread restore {turn.thread} {changed} --before` undoes that"
            )
        if error.get("kind") == LIMIT_KIND and after in {"ready", "failed"}:
            first = "" if after == "ready" else f"`uwf thread retry {turn.thread}`, then "
            told = f"{first}`uwf thread run {turn.thread} --wait` tries again, with growing pauses"
        self.saved = "its answer is kept" if played.is_kept else "nothing was lost"
        lost = f"{self.saved}: " if status in {"ready", "failed"} and not is_ending else ""
        super().__init__(
            f"{turn.role} failed ({agent_name(command)}): {self.reason}",
            hint=f"{cause}; {told}" if cause else f"{lost}{told}",
            thread=turn.thread,
            role=turn.role,
            agent=agent_name(command),
            attempt=turn.attempt,
            kind=error.get("kind"),
            status=status,
        )


class TriesUsedUp(TurnFailed):
    """The verifier rejected the work, and no try is left; its verdict was recorded as a step."""

    code = "tries-used-up"

    def __init__(self, turn: Turn, stepped: ThreadResult, rejection: str) -> None:
        worker = turn.role if turn.place is None else turn.place.node.agent
        number = _count_tries(turn)
        error = {"kind": "rejected", "message": rejection}
        super().__init__(turn, Played(None, 0, 0, error=error), stepped.status)
        self.stepped = stepped
        tries = "only try" if number == 1 else f"{number} tries"
        self.message = f"{worker} has used up its {tries}: {rejection}"
        self.hint = (
            f"`uwf thread retry {turn.thread} -m HINT` gives it all tries again, with a hint; "
            f"`uwf thread show {turn.thread}` has the verdict"
        )


class TurnInterrupted(TurnFailed):
    """Ctrl-C came while the agent ran; the attempt is recorded like any other."""

    code = "interrupted"
    exit_status = 130


class WorkKept(Conflict):
    """Another clone moved the thread while the agent ran; the agent's work is kept."""

    code = "work-kept"

    def __init__(self, thread: ThreadId, role: str, commit: Oid) -> None:
        super().__init__(
            f"thread {thread} moved on while {role} was at work; the finished step is kept as "
            f"commit {commit}",
            hint=f"go on from it in a thread of its own with `uwf thread fork {thread} --at "
            f"{commit}`; `uwf thread show {thread}` shows where the thread is now",
            thread=thread,
            role=role,
            commit=commit,
        )


def record_turn(caller: Caller, head: Head, turn: Turn, played: Played) -> ThreadResult:
    """Record what *turn* came to, after *head*.

    TurnFailed or TurnInterrupted: an attempt was recorded, unless the answer is kept for the next
    step. HeadMoved: another process moved the thread, and what the failed agent printed is kept as
    a commit.
    """
    if played.is_kept:
        interrupted = TurnInterrupted(turn, played, turn.snapshot.record.status)
        interrupted.hint = f"{interrupted.saved}: `uwf thread run {turn.thread}` goes on with it"
        raise interrupted
    while True:
        played, new, commit = _write_turn(caller, turn, played)
        try:
            advance_head(turn.store, head, commit)
            break
        except HeadMoved as moved:
            steered = _find_steered(turn, head)
            if steered is None:
                if played.reply or played.stdout or played.stderr:
                    preserve_commit(turn.store, turn.thread, commit)
                forget_run(turn.store, turn.thread, turn.started_after)
                if played.reply is None:
                    raise
                raise WorkKept(turn.thread, turn.role, commit) from moved
            head, turn = steered
            # A patch may have made the state larger.
            played = check_state(turn, played)
    forget_run(turn.store, turn.thread, turn.started_after)
    if played.reply is None:
        is_interrupted = (played.error or {}).get("kind") == "interrupted"
        failed = TurnInterrupted if is_interrupted else TurnFailed
        raise failed(
            turn, played, new.record.status, is_given_up=_is_given_up(turn, new), recorded=commit
        )
    stepped = build_thread_result(new.record, said=new.said, commit=commit)
    if new.record.retries_left is None:
        return stepped
    number = _count_tries(turn)
    most = number if turn.place is None else 1 + find_work_retries(turn.store.config, turn.place)
    said = f"rejected, try {number} of {max(number, most)}"
    reason = find_reason(played.reply.meta)
    given_up = "; given up, and the thread goes on" if _is_given_up(turn, new) else ""
    stepped = stepped._replace(
        said=(f"{said}: {reason}" if reason else said) + given_up, is_rejected=True
    )
    if stepped.status == "failed":
        raise TriesUsedUp(turn, stepped, describe_rejection(turn.role, played.reply.meta))
    return stepped


def _write_turn(caller: Caller, turn: Turn, played: Played) -> tuple[Played, NewCommit, Oid]:
    """Write the commit of a turn; it has failed if the name of one of the agent's texts is taken.

    Else each step would take up the same answer again.
    """
    new = build_turn(turn, played)
    program = agent_name(turn.agent.payload["command"])
    signing = caller.signing(turn.store, author=agent_identity(turn.role, program))
    try:
        return played, new, record_next(turn.store, turn.snapshot, new, signing)
    except NodeCollision as taken:
        if (played.error or {}).get("kind") == taken.code:
            raise
        error = {"kind": taken.code, "message": f"its output cannot be kept: {taken.message}"}
        left = StepFiles(usage=refuse_answer(played, error).left.usage)
    bare = played._replace(reply=None, error=error, stdout=b"", stderr=b"", left=left)
    return _write_turn(caller, turn, bare._replace(hint="its output is not kept"))


def _is_given_up(turn: Turn, new: NewCommit) -> bool:
    """Check whether *new* leads past the place of a flow in which the turn failed."""
    given_up = _find_given_up(turn)
    return given_up is not None and new.present.at == given_up


def _find_steered(turn: Turn, seen: Head) -> tuple[Head, Turn] | None:
    """Return the turn on top of the head, if only pauses or patches moved it, or None."""
    head = find_head(turn.store, turn.thread)
    if head is None or head.archived or head.commit == seen.commit:
        return None
    for snapshot in walk_history(turn.store, head.commit):
        if snapshot.commit.oid == seen.commit:
            break
        if snapshot.record.event not in CONTROLS:
            return None
    else:
        return None
    now = read_snapshot(turn.store, head.commit)
    if now.record.workflow != turn.snapshot.record.workflow:
        return None
    present = now.get_present().begin_tries(turn.at)
    return head, turn._replace(snapshot=now, present=present, place=find_turn_place(now, turn.at))


def build_turn(turn: Turn, played: Played) -> NewCommit:
    """Build the commit of a turn; its first node is the StepNode or the Attempt."""
    if played.reply is None:
        return build_attempt(turn, played)
    now = played.started_ms + played.duration_ms
    times = {"startedAt": played.started_ms, "durationMs": played.duration_ms}
    left = _left_nodes(played.left, now) | _kept_nodes(turn, played, now)
    nodes = _step_nodes(turn, played.reply, left, times, now)
    return _build_step(turn, "step", nodes, played.reply, files=played.files)
