"""`uwf thread step`: take one step: lock, read, decide, play, record, unlock.

Before the ref moves nothing has happened; after it everything has. Source: seed 000 section 1.3.
"""

from contextlib import suppress
from typing import NamedTuple

from uwf_git.agents.command_line import agent_name
from uwf_git.commands.caller import Caller
from uwf_git.commands.remote.fast_forward import fast_forward_from_tracking
from uwf_git.commands.step.branches import split_thread, step_branches, sweep_held
from uwf_git.commands.step.ending import (
    end_thread,
    find_begun_turn,
    finish_kill,
    keep_overtaken_work,
    play_recorded,
    play_turn,
    refuse_inputs,
    with_files,
)
from uwf_git.commands.step.record_turn import (
    TriesUsedUp,
    TurnFailed,
    TurnInterrupted,
    WorkKept,
    record_turn,
    wait_for_person,
)
from uwf_git.commands.turn.active_thread import ThreadNotReady, is_steppable, read_active
from uwf_git.commands.turn.bind_roles import check_next, check_roles
from uwf_git.commands.turn.branches import (
    BranchHeld,
    check_ancestors,
    check_result,
    choose_place,
    find_source,
)
from uwf_git.commands.turn.choose_agent import Choice, choose_agent, choose_checks, is_person
from uwf_git.commands.turn.decide import NextTurn, decide_next, find_turn_place
from uwf_git.commands.turn.files import existing_directory
from uwf_git.commands.turn.limits import check_limits, read_spending
from uwf_git.commands.turn.rules import read_keep_rules, read_retry
from uwf_git.commands.turn.turn import Player, ThreadResult, Turn
from uwf_git.debug_log import debug
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import END, Workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_workflow
from uwf_git.store.threads.heads import parse_thread_id
from uwf_git.store.threads.lock import (
    ThreadBusy,
    check_not_stopped,
    find_driver,
    has_lock_file,
    lock_thread,
)
from uwf_git.store.threads.snapshot import Snapshot
from uwf_git.store.trust import trust_agents

__all__ = ["StepRequest", "TriesUsedUp", "TurnFailed", "TurnInterrupted", "WorkKept", "step_thread"]


class StepRequest(NamedTuple):
    thread: str
    """A thread id or a unique prefix of an id."""

    play: Player
    choice: Choice = Choice()
    workdir: str | None = None
    """Where agents run from now on; needed once for a thread that came from elsewhere."""

    jobs: int = 4
    """How many branches of a thread that has split are stepped at once."""

    is_driven: bool = False
    """The caller drives the thread; False refuses a thread that another process drives."""


class _Next(NamedTuple):
    snapshot: Snapshot
    present: ThreadState
    workflow: Workflow
    turn: NextTurn

    @property
    def role(self) -> str:
        return self.turn.role


def step_thread(store: Store, caller: Caller, request: StepRequest) -> ThreadResult:
    thread = _find_thread(store, request.thread)
    if finish_kill(store, caller, thread):
        read_active(store, thread)
    try:
        taken = _take_step(store, caller, request, thread)
    except BranchHeld as held:
        if not request.is_driven:
            sweep_held(store, caller, held)
        raise
    finally:
        # The agent may have killed its own thread, and the killer with it. If that cannot be
        # finished now, the next step tells why.
        with suppress(UwfError):
            finish_kill(store, caller, thread)
    return taken or _step_branches(store, caller, request, thread)


def _find_thread(store: Store, text: str) -> ThreadId:
    """Return the thread that *text* names, read first so that an ended thread gets no lock file."""
    thread = parse_thread_id(text)
    if thread is not None and has_lock_file(store, thread):
        return thread
    return read_active(store, text)[0].thread


def _take_step(
    store: Store, caller: Caller, request: StepRequest, thread: ThreadId
) -> ThreadResult | None:
    with lock_thread(store, thread, since_ms=caller.now_ms()) as lock:
        _check_alone(store, thread, request)
        fast_forward_from_tracking(store, thread)
        seen = read_active(store, thread)
        head, snapshot = seen
        check_ancestors(store, snapshot)
        if snapshot.record.status == "split":
            return None
        keep_overtaken_work(store, caller, seen, request.play)
        present = snapshot.get_present()
        if not is_steppable(snapshot, present, now_ms=caller.now_ms(), is_driven=request.is_driven):
            raise ThreadNotReady(store, snapshot)
        begun = find_begun_turn(store, caller, snapshot, choice=request.choice)
        if begun is not None:
            # What steered the thread since it began does not undo it.
            lock.say(begun.role, agent_name(begun.agent.payload["command"]))
            played = with_files(begun, play_turn(begun, request.play))
            return record_turn(caller, head, begun, played)
        now = _decide(snapshot)
        if not (request.is_driven or request.choice.others):
            check_next(thread, now.workflow, request.choice.agents, role=now.role)
        if now.role == END:
            check_result(store, snapshot)
            return end_thread(store, caller, seen, event="end")._replace(said="completed")
        if now.turn.splits:
            return split_thread(store, caller, seen, now.turn, named=request.workdir)
        spending = read_spending(store, snapshot, now.present)
        check_limits(spending.thread, spending.present)
        agent, where = _choose_agent(store, caller, request, now)
        if is_person(agent):
            return wait_for_person(store, caller, seen, turn=now.turn)
        # Trusted even if the work directory is missing: the user gives the two one by one.
        choice = request.choice._replace(workdir=where)
        checks = choose_checks(store, snapshot, now.present, role=now.role, choice=choice)
        if request.choice.trust:
            trust_agents(store, [agent.payload, *checks], where)
        workdir = choose_place(store, caller, snapshot, named=request.workdir)
        caller.check_signing(store)
        # Reads settings: a bad one must fail before the agent runs.
        turn = _begin_turn(store, caller, now, agent, workdir)._replace(spending=spending)
        lock.say(turn.role, agent_name(agent.payload["command"]))
        played = refuse_inputs(turn) or play_recorded(turn, request.play)
        debug("9KYP4NAD", "turn played", thread=thread, role=turn.role, error=played.error)
        return record_turn(caller, head, turn, played)


def _step_branches(
    store: Store, caller: Caller, request: StepRequest, thread: ThreadId
) -> ThreadResult:
    # Its lock is not held while its branches take steps.
    tip = read_active(store, thread)[1]
    if request.workdir is not None:
        # Its branches take it over, and so does it when they are joined.
        choose_place(store, caller, tip, named=request.workdir)

    choice = request.choice
    if choice.agents and not request.is_driven:
        choice = choice._replace(others=check_roles(tip, None, choice.agents))

    def step(thread: ThreadId) -> ThreadResult:
        return step_thread(store, caller, request._replace(thread=thread, choice=choice))

    return step_branches(store, caller, tip, step, jobs=request.jobs)


def _check_alone(store: Store, thread: ThreadId, request: StepRequest) -> None:
    check_not_stopped(store, thread)
    driver = None if request.is_driven else find_driver(store, thread)
    if driver is not None:
        raise ThreadBusy(thread, driver)


def _decide(snapshot: Snapshot) -> _Next:
    present = snapshot.get_present()
    workflow = get_workflow(snapshot, present.workflow)
    return _Next(snapshot, present, workflow, decide_next(snapshot, present, workflow))


def _choose_agent(
    store: Store, caller: Caller, request: StepRequest, now: _Next
) -> tuple[Node, str | None]:
    where = find_source(store, now.snapshot)
    if request.workdir is not None:
        where = existing_directory(request.workdir, caller.cwd)
    choice = request.choice._replace(workdir=where)
    return choose_agent(store, now.snapshot, now.present, role=now.role, choice=choice), where


def _begin_turn(store: Store, caller: Caller, now: _Next, agent: Node, workdir: str) -> Turn:
    place = find_turn_place(now.snapshot, now.turn.at)
    return Turn(
        store,
        now.snapshot,
        now.present.begin_tries(now.turn.at),
        now.snapshot.turn_start,
        now.role,
        agent,
        caller.environ,
        workdir,
        retry=read_retry(store.config, agent.payload, place),
        keep=read_keep_rules(store.config),
        place=place,
    )
