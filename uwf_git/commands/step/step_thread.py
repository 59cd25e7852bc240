"""`uwf thread step`: take one step: lock, read, decide, play, record, unlock.

Before the ref moves nothing has happened; after it everything has. Source: seed 000 section 1.3.
"""

from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.agents.run_files import RunDirUnusable
from uwf_git.commands.agent_run.runs import forget_run, is_run_of, list_finished_runs
from uwf_git.commands.caller import Caller
from uwf_git.commands.remote.fast_forward import fast_forward_from_tracking
from uwf_git.commands.step.end_thread import end_thread
from uwf_git.commands.step.transitions import build_attempt, build_step, wait_for_person
from uwf_git.commands.turn.active_thread import ThreadNotReady, is_steppable, read_active
from uwf_git.commands.turn.check_meta import check_reply
from uwf_git.commands.turn.choose_agent import Choice, choose_agent, is_person
from uwf_git.commands.turn.decide import decide_next
from uwf_git.commands.turn.limits import check_limits
from uwf_git.commands.turn.retries import read_retry
from uwf_git.commands.turn.turn import Played, Player, ThreadResult, Turn, build_thread_result
from uwf_git.commands.turn.typed_agents import check_next
from uwf_git.commands.turn.workdir import choose_workdir
from uwf_git.debug_log import debug
from uwf_git.errors import AgentFailed, Conflict, UwfError
from uwf_git.model.event_rules import CONTROLS
from uwf_git.model.node import Node
from uwf_git.model.thread import Status, ThreadState
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition import END
from uwf_git.model.workflow import Workflow, parse_workflow
from uwf_git.store.git.identity import agent_identity
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, HeadMoved, advance_head, find_head
from uwf_git.store.threads.history import find_turn_start, walk_history
from uwf_git.store.threads.lock import ThreadBusy, check_not_stopped, find_driver, lock_thread
from uwf_git.store.threads.preserved import preserve_commit
from uwf_git.store.threads.record import NewCommit, record_next
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot
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
    """The agent failed, or its output does not fit the role."""

    code = "turn-failed"

    def __init__(self, turn: Turn, played: Played, status: Status) -> None:
        from uwf_git.commands.turn.known_agents import (  # noqa: PLC0415 (start-up time; only a failure needs it)
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


class StepRequest(NamedTuple):
    """The options of a step."""

    thread: str
    """A thread id or a unique prefix of one."""

    play: Player
    choice: Choice = Choice()
    workdir: str | None = None
    """Where agents run from now on; needed once for a thread that came from elsewhere."""

    is_driven: bool = False
    """The caller drives the thread; False refuses a thread that another process drives."""


class _Next(NamedTuple):
    """Whose turn it is at a commit."""

    snapshot: Snapshot
    present: ThreadState
    workflow: Workflow
    role: str


def step_thread(store: Store, caller: Caller, request: StepRequest) -> ThreadResult:
    """Take the next step of a thread.

    Raises:
        NoSuchThread, ThreadNotActive, ThreadNotReady: there is no step to take.
        ThreadBusy, HeadMoved: another process takes it.
        EndedElsewhere: the thread has ended at a remote, without the commits made here.
        WorkKept: another process took the step meanwhile; the agent's work is kept as a commit.
        NoAgent, AgentNotTrusted, WorkdirUnknown: an option is missing.
        NoSuchRole, RoleNotNext, BadCommand, BadAgent, CommandUnnamed: ``--agent`` is wrong.
        CannotSign, UnfitSetting: the settings ask for a signature that cannot be made; work that
            an agent has finished is recorded by the next step.
        TurnFailed, TurnInterrupted: the agent failed; an attempt was recorded.
    """
    # Check first without the lock, so an ended thread gets no new lock file.
    thread = read_active(store, request.thread)[0].thread
    with lock_thread(store, thread, since_ms=caller.now_ms()) as lock:
        _check_alone(store, thread, request)
        fast_forward_from_tracking(store, thread)
        seen = read_active(store, thread)
        head, snapshot = seen
        _keep_left_work(store, caller, request, seen)
        if not is_steppable(snapshot, snapshot.get_present(), now_ms=caller.now_ms()):
            raise ThreadNotReady(snapshot)
        now = _decide(snapshot)
        if not request.is_driven:
            check_next(thread, now.workflow, request.choice.agents, role=now.role)
        if now.role == END:
            return end_thread(store, caller, seen, event="end")._replace(said="completed")
        check_limits(thread, now.present)
        agent = _choose_agent(store, request, now)
        if is_person(agent):
            return wait_for_person(store, caller, seen, role=now.role, agent=agent)
        # Trusted even if the work directory is missing: the user gives the two one by one.
        if request.choice.trust:
            trust_agents(store, [agent.payload])
        workdir = choose_workdir(store, thread, caller.cwd, named=request.workdir)
        caller.check_signing(store)
        # Reads the retry settings: a bad one must fail before the agent runs.
        turn = _begin_turn(store, caller, now, agent, workdir)
        lock.say(turn.role, agent_name(agent.payload["command"]))
        played = check_reply(turn, now.workflow, request.play(turn))
        debug("9KYP4NAD", "turn played", thread=thread, role=turn.role, error=played.error)
        return _record(caller, head, turn, played)


def _check_alone(store: Store, thread: ThreadId, request: StepRequest) -> None:
    """Check that no other process drives the thread or is ending it."""
    check_not_stopped(store, thread)
    driver = None if request.is_driven else find_driver(store, thread)
    if driver is not None:
        raise ThreadBusy(thread, driver)


def _decide(snapshot: Snapshot) -> _Next:
    present = snapshot.get_present()
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    return _Next(snapshot, present, workflow, decide_next(snapshot, present, workflow))


def _choose_agent(store: Store, request: StepRequest, now: _Next) -> Node:
    return choose_agent(store, now.snapshot, now.present, role=now.role, choice=request.choice)


def _begin_turn(store: Store, caller: Caller, now: _Next, agent: Node, workdir: str) -> Turn:
    return Turn(
        store,
        now.snapshot,
        now.present,
        find_turn_start(store, now.snapshot),
        now.role,
        agent,
        caller.environ,
        workdir,
        retry=read_retry(store.config, agent.payload),
    )


def _keep_left_work(
    store: Store, caller: Caller, request: StepRequest, seen: tuple[Head, Snapshot]
) -> None:
    """Keep finished runs of dead engines that began after a commit other than the head.

    The thread was moved without its lock meanwhile, as by a plain `git push` into this store.

    Raises:
        WorkKept: there was such a run; the next step is free of it.
    """
    head, snapshot = seen
    base = find_turn_start(store, snapshot)
    for tip in list_finished_runs(store, head.thread):
        if tip == base:
            continue
        try:
            now = _decide(read_snapshot(store, tip))
            agent = _choose_agent(store, request, now)
            turn = _begin_turn(store, caller, now, agent, caller.cwd)
        except UwfError:
            # The run stays on disk until the thread has ended.
            continue
        if not is_run_of(turn):
            continue
        try:
            played = check_reply(turn, now.workflow, request.play(turn))
        except RunDirUnusable:
            # Half of the run is gone: its engine died while it removed what it had recorded.
            forget_run(store, head.thread, tip)
            continue
        if not _is_recorded(store, head, _build(turn, played), after=tip):
            with suppress(HeadMoved):
                _record(caller, Head(head.thread, tip, archived=False), turn, played)
        forget_run(store, head.thread, tip)


def _is_recorded(store: Store, head: Head, new: NewCommit, *, after: Oid) -> bool:
    """Check whether the thread has the work of *new* after the commit *after*.

    An engine may have died after it moved the ref and before it removed the run.
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
    return _without_times(next_move.get_node(name)) == _without_times(new.nodes[0])


def _without_times(node: Node) -> dict[str, Any]:
    # The dead engine took the times from its clock; here they come from the run's files.
    return {name: value for name, value in node.payload.items() if name not in _TIMES}


def _record(caller: Caller, head: Head, turn: Turn, played: Played) -> ThreadResult:
    while True:
        new = _build(turn, played)
        program = agent_name(turn.agent.payload["command"])
        signing = caller.signing(turn.store, author=agent_identity(turn.role, program))
        commit = record_next(turn.store, turn.snapshot, new, signing)
        try:
            advance_head(turn.store, head, commit)
            break
        except HeadMoved as moved:
            steered = _find_steered(turn, head)
            if steered is None:
                if played.reply is None:
                    raise
                preserve_commit(turn.store, turn.thread, commit)
                forget_run(turn.store, turn.thread, turn.started_after)
                raise WorkKept(turn.thread, turn.role, commit) from moved
            head, turn = steered
    forget_run(turn.store, turn.thread, turn.started_after)
    if played.reply is None:
        is_interrupted = (played.error or {}).get("kind") == "interrupted"
        raise (TurnInterrupted if is_interrupted else TurnFailed)(turn, played, new.record.status)
    return build_thread_result(new.record, said=new.said)


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
    return head, turn._replace(snapshot=now, present=now.get_present())


def _build(turn: Turn, played: Played) -> NewCommit:
    """Build the commit of a turn; its first node is the StepNode or the Attempt."""
    if played.reply is None:
        return build_attempt(turn, played)
    return build_step(turn, played, played.reply)
