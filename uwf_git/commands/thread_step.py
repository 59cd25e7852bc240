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
from uwf_git.commands.check_meta import check_reply
from uwf_git.commands.choose_agent import Choice, choose_agent
from uwf_git.commands.decide import decide_next
from uwf_git.commands.end_thread import end_thread
from uwf_git.commands.find_workdir import choose_workdir
from uwf_git.commands.play_agent import forget_runs, is_run_of, list_finished_runs
from uwf_git.commands.record_turn import attempt_transition, step_transition
from uwf_git.commands.take_over import take_over_tracked
from uwf_git.commands.thread_errors import ThreadNotReady, read_active
from uwf_git.commands.turn import Played, Player, Turn
from uwf_git.errors import AgentFailed, Conflict, UwfError
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Status
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition import END
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.heads import Head, HeadMoved, advance_head
from uwf_git.store.history import walk_history
from uwf_git.store.identity import agent_identity
from uwf_git.store.kept import keep_commit
from uwf_git.store.record import Transition, record_next
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import lock_thread
from uwf_git.store.trust import trust_agents

_TIMES = {"startedAt", "durationMs"}


class TurnFailed(AgentFailed):
    """The agent failed, or its output is not what the role must hand in."""

    code = "turn-failed"

    def __init__(self, turn: Turn, played: Played) -> None:
        error = dict(played.error or {})
        command = turn.agent.payload["command"]
        super().__init__(
            f"{turn.role} failed ({agent_name(command)}): {error.get('message')}",
            hint=played.hint
            or f"nothing was lost: `uwf thread step {turn.thread}` tries again; "
            f"`uwf thread show {turn.thread}` has its output",
            thread=turn.thread,
            role=turn.role,
            agent=agent_name(command),
            attempt=turn.attempt,
            kind=error.get("kind"),
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


class Stepped(NamedTuple):
    """A thread after a step."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    role: str | None
    """The role that took the step; None when the thread ended instead."""

    depth: int
    said: str
    """The subject of the commit: what happened, in words."""


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
        take_over_tracked(store, thread)
        seen = read_active(store, thread)
        head, snapshot = seen
        _keep_left_work(store, caller, request, head)
        if snapshot.record.status != "ready":
            raise ThreadNotReady(snapshot)
        present = snapshot.get_present()
        workflow = parse_workflow(snapshot.get_node(present.workflow))
        role = decide_next(snapshot, present, workflow)
        if role == END:
            return _ended(store, caller, seen)
        agent = choose_agent(store, snapshot, present, role=role, choice=request.choice)
        # Remembered even if the step is refused for want of a directory: the two are asked for
        # one after the other.
        if request.choice.trust:
            trust_agents(store, [agent.payload])
        workdir = choose_workdir(store, thread, caller.cwd, named=request.workdir)
        caller.check_signing(store)
        lock.say(role)
        turn = Turn(store, snapshot, present, role, agent, caller.environ, workdir)
        played = check_reply(turn, workflow, request.play(turn))
        return _recorded(caller, head, turn, played)


def _keep_left_work(store: Store, caller: Caller, request: StepRequest, head: Head) -> None:
    """Keep what agents finished after other commits than the head, their engines being dead.

    Somebody moved the thread meanwhile without looking, as a plain `git push` into this store.

    Raises:
        WorkKept: there was such work; the next step is free of it.
    """
    for tip in list_finished_runs(store, head.thread):
        if tip == head.commit:
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
    for snapshot in walk_history(store, head.commit):
        if snapshot.commit.parents[:1] == (after,):
            name = snapshot.get_present().last_attempt or snapshot.record.node
            return _without_times(snapshot.get_node(name)) == _without_times(transition.nodes[0])
    return False


def _without_times(node: Node) -> dict[str, Any]:
    # Who takes a run up knows them from its files, who ran it from its clock.
    return {name: value for name, value in node.payload.items() if name not in _TIMES}


def _ended(store: Store, caller: Caller, seen: tuple[Head, Snapshot]) -> Stepped:
    record = seen[1].record
    end_thread(store, caller, seen, outcome="completed")
    return Stepped(
        workflow=record.workflow,
        thread=record.thread,
        head=record.node,
        status="completed",
        role=None,
        depth=record.depth,
        said="completed",
    )


def _recorded(caller: Caller, head: Head, turn: Turn, played: Played) -> Stepped:
    transition = _transition(turn, played)
    program = agent_name(turn.agent.payload["command"])
    signing = caller.signing(turn.store, author=agent_identity(turn.role, program))
    commit = record_next(turn.store, turn.snapshot, transition, signing)
    try:
        advance_head(turn.store, head, commit)
    except HeadMoved as moved:
        if played.reply is None:
            raise
        keep_commit(turn.store, turn.thread, commit)
        forget_runs(turn.store, turn.thread, head.commit)
        raise WorkKept(turn.thread, turn.role, commit) from moved
    forget_runs(turn.store, turn.thread, head.commit)
    if played.reply is None:
        is_interrupted = (played.error or {}).get("kind") == "interrupted"
        raise (TurnInterrupted if is_interrupted else TurnFailed)(turn, played)
    record = transition.record
    return Stepped(
        workflow=record.workflow,
        thread=record.thread,
        head=record.node,
        status=record.status,
        role=turn.role,
        depth=record.depth,
        said=transition.said,
    )


def _transition(turn: Turn, played: Played) -> Transition:
    """Build what is recorded of a turn; its first node is the StepNode or the Attempt."""
    if played.reply is None:
        return attempt_transition(turn, played)
    return step_transition(turn, played, played.reply)
