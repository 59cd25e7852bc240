"""Record a played turn: write its commit, move the ref, forget its run directory.

If the thread was only steered meanwhile (pause, patch), the turn is recorded on top of that. If it
moved otherwise, a finished step is kept as a commit of its own.
"""

import shlex

from uwf_git.agents.command_line import ProgramMissing, agent_name
from uwf_git.commands.agent_run.runs import forget_run
from uwf_git.commands.caller import Caller
from uwf_git.commands.step.transitions import build_attempt, build_step
from uwf_git.commands.turn.check_meta import check_state
from uwf_git.commands.turn.turn import Played, ThreadResult, Turn, build_thread_result
from uwf_git.errors import AgentFailed, Conflict
from uwf_git.model.event_rules import CONTROLS
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Status
from uwf_git.store.git.identity import agent_identity
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, HeadMoved, advance_head, find_head
from uwf_git.store.threads.history import preserve_commit, walk_history
from uwf_git.store.threads.lock import find_kill_request, is_being_stopped
from uwf_git.store.threads.record import NewCommit, record_next
from uwf_git.store.threads.snapshot import read_snapshot

_NEXT = {
    "ready": "`uwf thread step {thread}` tries again; `uwf thread show {thread}` has its output",
    "given up": "its place in the flow was given up (onError: continue): `uwf thread step "
    "{thread}` goes on without it; `uwf thread show {thread}` has its output",
    "failed": "`uwf thread step {thread}` tries again, and `uwf thread retry {thread}` lets a run "
    "go on; `uwf thread show {thread}` has its output",
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
        self, turn: Turn, played: Played, status: Status, *, is_given_up: bool = False
    ) -> None:
        from uwf_git.commands.turn.known_agents import (  # noqa: PLC0415 (start-up time; only a failure needs it)
            tell_adapter,
        )

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
        is_ending = played.is_stopped and _is_ending(turn.store, turn.thread)
        after = "given up" if is_given_up else status
        told = _NEXT["ending" if is_ending else after].format(thread=turn.thread)
        lost = "nothing was lost: " if status in {"ready", "failed"} and not is_ending else ""
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


def _is_ending(store: Store, thread: ThreadId) -> bool:
    return is_being_stopped(store, thread) or find_kill_request(store, thread) is not None


class TriesUsedUp(TurnFailed):
    """The verifier rejected the work, and no try is left; its verdict was recorded as a step."""

    code = "tries-used-up"

    def __init__(self, turn: Turn, stepped: ThreadResult, rejection: str) -> None:
        place, tried = turn.place, turn.present.tried
        worker = turn.role if place is None else place.node.agent
        number = 1 if tried is None else tried.number
        error = {"kind": "rejected", "message": rejection}
        super().__init__(turn, Played(None, 0, 0, error=error), stepped.status)
        self.stepped = stepped
        self.message = f"{worker} has used up its {_count_tries(number)}: {rejection}"
        self.hint = (
            f"`uwf thread retry {turn.thread} -m HINT` gives it all tries again, with a hint; "
            f"`uwf thread show {turn.thread}` has the verdict"
        )


def _count_tries(number: int) -> str:
    return "only try" if number == 1 else f"{number} tries"


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

    Raises:
        TurnFailed, TurnInterrupted: the agent failed; an attempt was recorded, unless its answer
            is kept for the next step.
        TriesUsedUp: its verdict rejected the last try; it was recorded.
        WorkKept: another process moved the thread; the finished step is kept as a commit.
        HeadMoved: another process moved the thread, and the agent had failed; what it printed is
            kept as a commit.
    """
    if played.is_kept:
        interrupted = TurnInterrupted(turn, played, turn.snapshot.record.status)
        interrupted.hint = f"its answer is kept: `uwf thread run {turn.thread}` goes on with it"
        raise interrupted
    while True:
        new = build_turn(turn, played)
        program = agent_name(turn.agent.payload["command"])
        signing = caller.signing(turn.store, author=agent_identity(turn.role, program))
        commit = record_next(turn.store, turn.snapshot, new, signing)
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
        raise failed(turn, played, new.record.status, is_given_up=_is_given_up(turn, new))
    stepped = build_thread_result(new.record, said=new.said, commit=commit)
    if stepped.status == "failed":
        from uwf_git.engine.flow_state import describe_rejection  # noqa: PLC0415 (start-up time; flows only)

        raise TriesUsedUp(turn, stepped, describe_rejection(turn.role, played.reply.meta))
    return stepped


def _is_given_up(turn: Turn, new: NewCommit) -> bool:
    """Check whether *new* leads past the place of a flow in which the turn failed."""
    given_up = None if turn.place is None else turn.place.find_given_up()
    return given_up is not None and new.present.at == given_up


def _find_steered(turn: Turn, seen: Head) -> tuple[Head, Turn] | None:
    """Return the turn on top of the current head if the thread was only steered since *seen*.

    A pause or a patch takes no lock, and a running agent works on. None: anything else happened.
    """
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
    return head, turn._replace(snapshot=now, present=now.get_present().begin_tries(turn.at))


def build_turn(turn: Turn, played: Played) -> NewCommit:
    """Build the commit of a turn; its first node is the StepNode or the Attempt."""
    if played.reply is None:
        return build_attempt(turn, played)
    return build_step(turn, played, played.reply)
