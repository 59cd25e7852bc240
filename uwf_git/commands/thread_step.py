"""`uwf thread step`: one step, one process, one commit.

Owns: the order lock, read, decide, act, write, move, unlock.
Knows nothing of: how a role is played, what nodes a turn leaves.
Always true: before the ref moves nothing has happened; after it everything has.
Source: seed 000 section 1.3.
"""

from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.spool import SpoolFailed
from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.caller import Caller
from uwf_git.commands.check_limits import check_limits
from uwf_git.commands.check_meta import check_reply
from uwf_git.commands.choose_agent import Choice, choose_agent, is_person
from uwf_git.commands.decide import decide_next
from uwf_git.commands.end_thread import end_thread
from uwf_git.commands.find_workdir import choose_workdir
from uwf_git.commands.play_agent import forget_runs, is_run_of, list_finished_runs
from uwf_git.commands.record_turn import attempt_transition, step_transition
from uwf_git.commands.retry_rules import read_retry
from uwf_git.commands.stepped import Stepped, tell_stepped
from uwf_git.commands.take_over import take_over_tracked
from uwf_git.commands.thread_errors import ThreadNotReady, is_steppable, read_active
from uwf_git.commands.turn import Played, Player, Turn
from uwf_git.commands.wait_for_person import wait_for_person
from uwf_git.debug_log import debug
from uwf_git.errors import AgentFailed, Conflict, UwfError
from uwf_git.model.node import Node
from uwf_git.model.thread import CONTROLS, Status
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition import END
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.heads import Head, HeadMoved, advance_head, find_head
from uwf_git.store.history import find_base, walk_history
from uwf_git.store.identity import agent_identity
from uwf_git.store.kept import keep_commit
from uwf_git.store.record import Transition, record_next
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, check_not_stopped, find_driver, lock_thread
from uwf_git.store.trust import trust_agents

_TIMES = {"startedAt", "durationMs"}


_NEXT = {
    "ready": "nothing was lost: `uwf thread step {thread}` tries again; "
    "`uwf thread show {thread}` has its output",
    "failed": "nothing was lost: `uwf thread retry {thread}` lets it be tried again; "
    "`uwf thread show {thread}` has its output",
    "waiting": "it can be tried again when the limit ends: `uwf thread run {thread} --wait` sleeps "
    "until then",
    "paused": "the thread is paused: `uwf thread resume {thread}` lets it go on",
}


class TurnFailed(AgentFailed):
    """The agent failed, or its output is not what the role must hand in."""

    code = "turn-failed"

    def __init__(self, turn: Turn, played: Played, status: Status) -> None:
        from uwf_git.commands.known_agents import (  # noqa: PLC0415 (only a failure asks for it)
            tell_adapter,
        )

        error = dict(played.error or {})
        command = turn.agent.payload["command"]
        hint = tell_adapter(command) or played.hint
        super().__init__(
            f"{turn.role} failed ({agent_name(command)}): {error.get('message')}",
            hint=hint or _NEXT.get(status, _NEXT["ready"]).format(thread=turn.thread),
            thread=turn.thread,
            role=turn.role,
            agent=agent_name(command),
            attempt=turn.attempt,
            kind=error.get("kind"),
            status=status,
        )


class TurnInterrupted(TurnFailed):
    """Ctrl-C came while the agent ran. The attempt is recorded like any other."""

    code = "interrupted"
    exit_status = 130


class WorkKept(Conflict):
    """Another clone moved the thread while the agent ran; what the agent did is not lost."""

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


class StepRequest(NamedTuple):
    """What is asked of a step."""

    thread: str
    """An id, or a beginning that no other thread has."""

    play: Player
    choice: Choice = Choice()
    workdir: str | None = None
    """Where the agent runs from now on; needed once for a thread that came from elsewhere."""

    is_driven: bool = False
    """Whether the caller holds the right to drive the thread; who does not must not interfere."""


def step_thread(store: Store, caller: Caller, request: StepRequest) -> Stepped:
    """Take the next step of a thread.

    Raises:
        NoSuchThread, ThreadNotActive, ThreadNotReady: there is no step to take.
        ThreadBusy, HeadMoved: somebody else takes it.
        EndedElsewhere: it has ended at a remote, without what is here.
        WorkKept: somebody else took it meanwhile; this one's commit is kept, and named.
        NoAgent, AgentNotTrusted, WorkdirUnknown: it cannot be taken like this.
        CannotSign, UnfitSetting: its commit cannot be signed, as the settings ask; the agent's
            work, if it is done, is taken up by the next step.
        TurnFailed, TurnInterrupted: there is no result; an attempt was recorded.
    """
    # Asked before the lock as well: a thread that has ended needs no lock file again.
    thread = read_active(store, request.thread)[0].thread
    with lock_thread(store, thread, since_ms=caller.now_ms()) as lock:
        _check_alone(store, thread, request)
        take_over_tracked(store, thread)
        seen = read_active(store, thread)
        head, snapshot = seen
        _keep_left_work(store, caller, request, seen)
        present = snapshot.get_present()
        if not is_steppable(snapshot, present, now_ms=caller.now_ms()):
            raise ThreadNotReady(snapshot)
        workflow = parse_workflow(snapshot.get_node(present.workflow))
        role = decide_next(snapshot, present, workflow)
        if role == END:
            return _ended(store, caller, seen)
        check_limits(thread, present)
        agent = choose_agent(store, snapshot, present, role=role, choice=request.choice)
        if is_person(agent):
            return wait_for_person(store, caller, seen, role=role, agent=agent)
        # Remembered even if the step is refused for want of a directory: the two are asked for
        # one after the other.
        if request.choice.trust:
            trust_agents(store, [agent.payload])
        workdir = choose_workdir(store, thread, caller.cwd, named=request.workdir)
        caller.check_signing(store)
        # Asked before anybody is paid: a setting that means nothing must not lose a result.
        read_retry(store.config, agent.payload)
        lock.say(role, agent_name(agent.payload["command"]))
        turn = Turn(store, snapshot, present, role, agent, caller.environ, workdir)
        played = check_reply(turn, workflow, request.play(turn))
        debug("9KYP4NAD", "turn played", thread=thread, role=role, error=played.error)
        return _recorded(caller, head, turn, played)


def _check_alone(store: Store, thread: ThreadId, request: StepRequest) -> None:
    """Make sure that nobody else steps this thread in between, or is ending it."""
    check_not_stopped(store, thread)
    driver = None if request.is_driven else find_driver(store, thread)
    if driver is not None:
        raise ThreadBusy(thread, driver)


def _keep_left_work(
    store: Store, caller: Caller, request: StepRequest, seen: tuple[Head, Snapshot]
) -> None:
    """Keep what agents finished after other commits than the head, their engines being dead.

    Somebody moved the thread meanwhile without looking, as a plain `git push` into this store.

    Raises:
        WorkKept: there was such work; the next step is free of it.
    """
    head, now = seen
    base = find_base(store, now)
    for tip in list_finished_runs(store, head.thread):
        if tip == base:
            continue
        try:
            snapshot = read_snapshot(store, tip)
            present = snapshot.get_present()
            workflow = parse_workflow(snapshot.get_node(present.workflow))
            role = decide_next(snapshot, present, workflow)
            agent = choose_agent(store, snapshot, present, role=role, choice=request.choice)
        except UwfError:
            # It cannot be taken up like this; it stays until the thread has ended.
            continue
        turn = Turn(store, snapshot, present, role, agent, caller.environ, caller.cwd)
        if not is_run_of(turn):
            continue
        try:
            played = check_reply(turn, workflow, request.play(turn))
        except SpoolFailed:
            # Half of it is gone: its engine died while it forgot what it had recorded.
            forget_runs(store, head.thread, tip)
            continue
        if not _is_recorded(store, head, _transition(turn, played), after=tip):
            with suppress(HeadMoved):
                _recorded(caller, Head(head.thread, tip, archived=False), turn, played)
        forget_runs(store, head.thread, tip)


def _is_recorded(store: Store, head: Head, transition: Transition, *, after: Oid) -> bool:
    """Tell whether the thread has this very work after the commit *after*.

    An engine may have died when it had moved the ref, and before it forgot the run.
    """
    next_move: Snapshot | None = None
    for snapshot in walk_history(store, head.commit):
        if snapshot.record.event not in CONTROLS:
            next_move = snapshot
        if snapshot.commit.parents[:1] == (after,):
            break
    else:
        return False
    if next_move is None:
        return False
    name = next_move.get_present().last_attempt or next_move.record.node
    return _without_times(next_move.get_node(name)) == _without_times(transition.nodes[0])


def _without_times(node: Node) -> dict[str, Any]:
    # Who takes a run up knows them from its files, who ran it from its clock.
    return {name: value for name, value in node.payload.items() if name not in _TIMES}


def _ended(store: Store, caller: Caller, seen: tuple[Head, Snapshot]) -> Stepped:
    end_thread(store, caller, seen, outcome="completed")
    record = seen[1].record._replace(status="completed", role=None)
    return tell_stepped(record, said="completed")


def _recorded(caller: Caller, head: Head, turn: Turn, played: Played) -> Stepped:
    base = turn.base
    while True:
        transition = _transition(turn, played)
        program = agent_name(turn.agent.payload["command"])
        signing = caller.signing(turn.store, author=agent_identity(turn.role, program))
        commit = record_next(turn.store, turn.snapshot, transition, signing)
        try:
            advance_head(turn.store, head, commit)
            break
        except HeadMoved as moved:
            steered = _find_steered(turn, head)
            if steered is None:
                if played.reply is None:
                    raise
                keep_commit(turn.store, turn.thread, commit)
                forget_runs(turn.store, turn.thread, base)
                raise WorkKept(turn.thread, turn.role, commit) from moved
            head, turn = steered
    forget_runs(turn.store, turn.thread, base)
    record = transition.record
    if played.reply is None:
        is_interrupted = (played.error or {}).get("kind") == "interrupted"
        raise (TurnInterrupted if is_interrupted else TurnFailed)(turn, played, record.status)
    return tell_stepped(record, said=transition.said)


def _find_steered(turn: Turn, seen: Head) -> tuple[Head, Turn] | None:
    """Give the same turn where the thread is now, if it was only steered since *seen*.

    A pause or a patch needs no lock, and an agent that is at work works on; None if something
    else has happened.
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
    return head, turn._replace(snapshot=now, present=now.get_present())


def _transition(turn: Turn, played: Played) -> Transition:
    """Build what is recorded of a turn; its first node is the StepNode or the Attempt."""
    if played.reply is None:
        return attempt_transition(turn, played)
    return step_transition(turn, played, played.reply)
