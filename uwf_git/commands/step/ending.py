"""End a thread, by a step or by a kill; take up what dead engines and the last fetch left."""

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

from uwf_git.agents.run_files import RunDirUnusable
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.run_checks import (
    Secrets,
    find_turn_secrets,
    leave_unchecked,
    read_secrets,
)
from uwf_git.commands.agent_run.runs import (
    BegunTurn,
    PlayedElsewhere,
    PlayedHere,
    check_nothing_runs,
    forget_recorded_runs,
    forget_run,
    list_finished_runs,
    lock_stopped,
    read_begun_turn,
    read_state,
)
from uwf_git.commands.caller import Caller
from uwf_git.commands.family import find_isolation, find_owner
from uwf_git.commands.step.record_turn import TurnFailed, WorkKept, build_turn, record_turn
from uwf_git.commands.turn.branches import ThreadNotActive, choose_place, find_source, read_active
from uwf_git.commands.turn.choose_agent import Choice, build_agent, choose_agent
from uwf_git.commands.turn.flow import (
    Spending,
    find_turn_place,
    read_keep_rules,
    read_retry,
    read_spending,
)
from uwf_git.commands.turn.next_move import NextTurn
from uwf_git.commands.turn.turn import (
    KIND,
    Played,
    Player,
    ThreadResult,
    Turn,
    build_thread_result,
    check_reply,
    read_input_files,
)
from uwf_git.commands.worktree.chain import RECORD_FILES, Chain, HasKey, find_chain, note_unrecorded
from uwf_git.commands.worktree.record import find_own_worktree, list_worktrees
from uwf_git.commands.worktree.worktrees import keep_work, remove_ended, sweep_worktrees
from uwf_git.debug_log import debug
from uwf_git.engine.masking import mask_bytes
from uwf_git.errors import Conflict, StoreFailed, UwfError, name_some
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.event_folds import Cause
from uwf_git.model.event_rules import CONTROLS
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.text import visible_line
from uwf_git.model.thread import ThreadState
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, HeadMoved, archive_head
from uwf_git.store.threads.history import (
    Snapshot,
    build_next,
    get_typed,
    get_workflow,
    read_snapshot,
    read_standing,
    record_next,
    walk_history,
)
from uwf_git.store.threads.local_files import (
    SLOW_TO_RECORD,
    UNRECORDED,
    find_kill_request,
    find_workdir,
    forget_kill_request,
    forget_lock,
    forget_workdir,
    get_run_dir,
    is_being_stopped,
    lock_stop,
    note_once,
    write_kill_request,
)
from uwf_git.surroundings import is_in_repository

# Fast-forward before a step: take over what the last fetch left in the thread's tracking refs.
#
# A store without remotes pays nothing for this, not even imports.


def fast_forward_from_tracking(store: Store, thread: ThreadId) -> bool:
    """Fast-forward *thread* to its tracking refs before a step; return whether it moved.

    The caller holds the lock. A thread that diverged from a remote may be stepped, so that work
    goes on without a network; unless it has *ended* at a remote, as the sides could never be
    joined.
    """
    if not store.has_remotes:
        return False
    from uwf_git.store.remotes.remotes import list_sides  # noqa: PLC0415 (only for stores with remotes)

    for remote, sides in list_sides(store, thread):
        if sides.active is None or sides.is_in_sync:
            continue
        from uwf_git.commands.remote.reconcile import reconcile_thread, take_over_steering  # noqa: PLC0415 (imports all checks; few steps need them)

        try:
            reconciled = reconcile_thread(store, remote, thread)
            debug("ZV8N6BWT", "tracked", thread=thread, remote=remote.name, event=reconciled.event)
        except Conflict:
            # An agent's work has to be recorded first, or another process moved the thread.
            debug("QZHR5YRJ", "tracked in vain", thread=thread, remote=remote.name)
            if take_over_steering(store, remote, thread) is not None:
                return True
            continue
        if reconciled.event in {"moved", "archived"}:
            return True
        there = sides.there_archived
        if reconciled.event == "diverged" and there is not None:
            here = sides.active
            raise Conflict(
                f"thread {thread} has ended at {remote.name}, at {there}, "
                f"which does not descend from {here} here",
                code="ended-elsewhere",
                hint=f"continue in a fork: `uwf thread fork {thread} --at {here}`",
                thread=thread,
                remote=remote.name,
                local=here,
                tracked=there,
            )
    return False


# The files of the project before and after a turn, recorded in the chain of its thread.
#
# What was there before is noted beside the run, so that whoever records the turn of a dead engine
# finds it. Recording fails no turn.

_SLOW_S = 1.0


def record_before(turn: Turn) -> None:
    """Record the files before *turn*, and note their commit beside its run."""
    with warned(turn.store, turn.thread, turn.started_after):
        chain = _find_chain(turn)
        if chain is not None:
            turn.run_dir.write("before", _record(turn, chain, "before"))


def record_before_wait(
    store: Store, caller: Caller, snapshot: Snapshot, following: NextTurn, agent: Node
) -> None:
    """Record the files before the turn of a person, unless it is known how they were left."""
    turn = person_turn(store, caller, snapshot, following, agent, snapshot.turn_start)
    with warned(store, turn.thread, turn.started_after):
        chain = _find_chain(turn)
        if chain is not None and chain.find_begun() is None:
            _record(turn, chain, "before")


def record_branches(
    store: Store, caller: Caller, snapshot: Snapshot, *, named: str | None = None
) -> None:
    """Record for a thread the files before it splits, or as branches that work there left them.

    *named* is its new work directory.
    """
    after = snapshot.turn_start
    with warned(store, snapshot.record.thread, after):
        owner = find_owner(store, snapshot)
        if owner is not None and find_own_worktree(store, owner) is None:
            # No agent has worked apart yet, and the first makes the worktree.
            return
        if named is not None or owner is not None:
            choose_place(store, caller, snapshot, named=named)
        agent, split = build_agent({"command": ""}, timestamp=0), snapshot.get_present().split
        turn = person_turn(store, caller, snapshot, NextTurn("branches"), agent, after)
        chain = _find_chain(turn)
        if chain is not None and split is None:
            _record(turn, chain, "before")
        elif chain is not None and split is not None:
            branches = [each.thread for each in split.children]
            _record(turn, chain, "after", since=chain.find_begun(), branches=branches)


def person_turn(
    store: Store, caller: Caller, snapshot: Snapshot, following: NextTurn, agent: Node, after: Oid
) -> Turn:
    """Return a person's turn, which has no work directory, retries or limits of its own."""
    present, place = snapshot.get_present(), find_turn_place(snapshot, following.at)
    role, environ = following.role, caller.environ
    return Turn(store, snapshot, present, after, role, agent, environ, "", place=place)


def find_range(turn: Turn, before: str | None) -> str | None:
    """Return the commits of the files *before* and after *turn*; None if it changed none.

    A person's turn has no *before*: it began with the thread's newest record; without one, nobody
    knows how the files were.
    """
    after = None
    with warned(turn.store, turn.thread, turn.started_after):
        chain = _find_chain(turn, has_begun=before is not None)
        if chain is not None:
            before = before or chain.find_begun()
            after = _record(turn, chain, "at" if before is None else "after", since=before)
            if before is None:
                # What it changed is not known, though the files are recorded again.
                note_unrecorded(turn.store, turn.thread, turn.started_after)
    return None if before is None or after in {None, before} else f"{before}..{after}"


def _record(
    turn: Turn,
    chain: Chain,
    when: str,
    *,
    since: str | None = None,
    branches: Sequence[ThreadId] = (),
) -> str:
    """Return the commit of the files as they are."""
    title = f"{when} {turn.role}, step {turn.present.depth + 1}, attempt {turn.attempt}"
    secrets = read_secrets(turn.run_dir, find_turn_secrets(turn))
    began, worked = time.monotonic(), _read_work_s()
    has_key = judge_by(secrets)
    commit = chain.record(title, turn.started_after, has_key, since=since, branches=branches)
    took = time.monotonic() - began
    # On a busy machine all takes long, and nothing is to be said of the project.
    if min(took, 2 * (_read_work_s() - worked)) > _SLOW_S:
        note_once(turn.store, SLOW_TO_RECORD, turn.thread, f"{took:.1f} s".encode())
    return commit


def _read_work_s() -> float:
    """Return the processor time of this process and of the gits that it has run."""
    return sum(os.times()[:4])


def _find_chain(turn: Turn, *, has_begun: bool = False) -> Chain | None:
    """Return where the files of *turn* are recorded; None if they are not, which is noted."""
    store, thread = turn.store, turn.thread
    is_on = store.config.get_flag(RECORD_FILES, default=True)
    chain = find_chain(store, thread, turn.environ) if is_on else None
    place = None if chain is not None else find_workdir(store, thread)
    if place is not None and is_on and has_begun:
        raise StoreFailed(f"the work directory {place} is in no git repository any more")
    if place is not None and is_in_repository(place):
        note_unrecorded(store, thread, turn.started_after)
    return chain


def judge_by(secrets: Secrets) -> HasKey:
    if not secrets.known and secrets.others is None:
        return None
    return lambda content: mask_bytes(content, secrets.find_in(content)) != content


@contextmanager
def warned(store: Store, thread: ThreadId, after: str) -> Iterator[None]:
    """Let no failure to record files fail the turn after *after*.

    Each failure is noted, and the first of *thread* for a warning.
    """
    try:
        yield
    except (UwfError, OSError, ValueError) as error:
        debug("F8MT4QXK", "files not recorded", thread=thread, error=str(error))
        with suppress(OSError):
            note_unrecorded(store, thread, after)
            note_once(store, UNRECORDED, thread, str(error).encode(errors="replace"))


# End a thread: its last commit, then its move to the archive, then its local files.
#
# The last commit adds no node; the head of the chain stays.


def end_thread(
    store: Store,
    caller: Caller,
    seen: tuple[Head, Snapshot],
    *,
    event: Literal["end", "kill"],
    body: str = "",
) -> ThreadResult:
    """End a thread whose lock the caller holds; *body* is the reason, if there is one."""
    head, snapshot = seen
    work = _keep_work(store, caller, snapshot, is_killed=event == "kill")
    new = build_next(read_standing(snapshot), event, Cause(note=body))
    commit = record_next(store, snapshot, new, caller.signing(store))
    archive_head(store, head, commit)
    # A run that could not be recorded stays readable until gc finds it old.
    forget_recorded_runs(store, head.thread)
    forget_workdir(store, head.thread)
    if find_owner(store, snapshot) is not None:
        # The next sweep removes what cannot be removed now.
        with suppress(UwfError, OSError):
            remove_ended(store, caller.environ, snapshot, is_kept=work is not None)
    sweep_worktrees_of(store, caller, head.thread)
    forget_lock(store, head.thread)
    return build_thread_result(new.record, said=new.said, commit=commit)._replace(work=work)


def sweep_worktrees_of(store: Store, caller: Caller, *threads: ThreadId) -> None:
    """Remove the worktrees of ended branches that a killed or another process left."""
    if any(list_worktrees(store, thread) for thread in threads):
        # The next sweep removes what cannot be removed now.
        with suppress(UwfError, OSError):
            sweep_worktrees(store, caller.environ, threads)


def _keep_work(store: Store, caller: Caller, snapshot: Snapshot, *, is_killed: bool) -> str | None:
    """Commit what a branch left in its worktree; return the ref of the commit."""
    if find_isolation(snapshot) is None:
        return None
    try:
        return keep_work(store, caller.environ, snapshot)
    except UwfError:
        # A kill ends the thread all the same; its worktree stays until it can be committed.
        if not is_killed:
            raise
        return None


# Play a turn: the agent answers, and the schema and the checks of its role check that.


def refuse_inputs(turn: Turn) -> Played | None:
    """Return the failed turn of an agent whose input files are not all there; None: they are."""
    files = read_input_files(
        turn.snapshot, turn.present, turn.place, turn.asked, workdir=turn.workdir
    )
    bad = [f"{visible_line(each.path)} {each.problem}" for each in files if each.problem]
    if not bad:
        return None
    return Played(
        reply=None,
        started_ms=turn.snapshot.commit.time_s * 1000,
        duration_ms=0,
        error={"kind": KIND, "message": f"its inputFiles: {name_some(bad)}"},
        hint="inputFiles are texts below the work directory, up to 1 MiB each; no agent has run",
    )


def play_turn(turn: Turn, play: Player) -> Played:
    """Play *turn* by *play*, and check the answer; a refused one is a failed turn."""
    played = answer_turn(turn, play)
    if played.reply is None or not turn.asked.checks:
        return played
    return play(turn._replace(answered=played))


def play_recorded(turn: Turn, play: Player) -> Played:
    """Play *turn* as ``play_turn``, and record the files of its project before and after it."""
    if not is_in_repository(turn.workdir):
        return play_turn(turn, play)
    record_before(turn)
    return with_files(turn, play_turn(turn, play))


def with_files(turn: Turn, played: Played) -> Played:
    """Return *played* with the commits of the files, if they were recorded before the turn."""
    before = turn.run_dir.read("before")
    return played._replace(files=find_range(turn, before)) if before else played


def answer_turn(turn: Turn, play: Player) -> Played:
    """Play *turn* by *play*, and check the meta; the checks of its role do not run."""
    played = play(turn)
    _check_store(turn)
    return check_reply(turn, played)


def _check_store(turn: Turn) -> None:
    """Check that the store is still there: what follows would make folders where it was."""
    if os.path.lexists(os.path.join(turn.store.path, "HEAD")):
        return
    run = os.path.relpath(turn.run_dir.path, turn.store.path)
    raise StoreFailed(
        f"the store {turn.store.path} is gone; {turn.role} of thread {turn.thread} has ended, and "
        "is not recorded",
        hint=f"where the store is now, the agent's output is in {run}/stdout, and the next step "
        "there records that",
        thread=turn.thread,
        path=turn.store.path,
    )


def without_checks(turn: Turn, played: Played) -> Played:
    """Return an answer that comes too late to be checked: refused if its role has checks."""
    if played.reply is None or not turn.asked.checks:
        return played
    return leave_unchecked(played, "the thread has moved on, or ends")


def prepare_turn(
    store: Store,
    caller: Caller,
    seen: tuple[Snapshot, ThreadState],
    following: NextTurn,
    spending: Spending,
    *,
    agent: Node,
    workdir: str,
) -> Turn:
    """Return the turn *following* of a thread that was *seen*; *spending* was read there, too."""
    snapshot, present = seen
    place = find_turn_place(snapshot, following.at)
    return Turn(
        store,
        snapshot,
        present.begin_tries(following.at),
        snapshot.turn_start,
        following.role,
        agent,
        caller.environ,
        workdir,
        retry=read_retry(store.config, agent.payload, place),
        keep=read_keep_rules(store.config),
        place=place,
        spending=spending,
    )


# Work of dead engines: take up the turn that is under way, keep turns that were overtaken.
#
# A run directory names the role and the agent of its turn, so that no later decision (a patch of
# the state, another binding) can lead to another turn in its place. Law 8: nothing is paid for
# twice.

_TIMES = {"startedAt", "durationMs"}
# What checks printed, and how they ended.
_OF_CHECKS = {"stderr", "error", "exitCode"}
_NO_CHOICE = Choice()


def find_begun_turn(
    store: Store, caller: Caller, snapshot: Snapshot, *, choice: Choice = _NO_CHOICE
) -> Turn | None:
    """Return the turn that a dead engine began at this place of a thread, or None.

    Its agent is at work, has ended or was lost. A *choice* of another agent than the agent at work
    is not overruled: playing that turn raises.
    """
    base = snapshot.turn_start
    run = get_run_dir(store, snapshot.record.thread, base)
    # Most steps find no folder, and then create no lock file either.
    state = read_state(run) if os.path.isdir(run.path) else "not-started"
    if state == "not-started":
        return None
    turn = _rebuild_turn(store, caller, snapshot, base)
    if turn is None or not (choice.agents and state == "alive"):
        return turn
    choice = choice._replace(workdir=find_source(store, snapshot))
    chosen = choose_agent(store, snapshot, turn.present, role=turn.role, choice=choice)
    return turn if chosen.hash == turn.agent.hash else None


def _rebuild_turn(store: Store, caller: Caller, snapshot: Snapshot, base: Oid) -> Turn | None:
    """Return the turn that began after *base*; None if its run does not say which it was."""
    begun = read_begun_turn(get_run_dir(store, snapshot.record.thread, base))
    agent = None if begun is None else _find_agent(snapshot, begun)
    present = snapshot.get_present()
    workflow = get_workflow(snapshot, present.workflow)
    if begun is None or agent is None or begun.role not in workflow.roles:
        return None
    # It has run, or runs: its work directory was chosen when it began.
    workdir = find_workdir(store, snapshot.record.thread) or caller.cwd
    following = NextTurn(begun.role, begun.at)
    spending = read_spending(store, snapshot, present)
    turn = prepare_turn(
        store, caller, (snapshot, present), following, spending, agent=agent, workdir=workdir
    )
    place = turn.place
    if (place is None) != (begun.at is None) or (place is not None and place.role != begun.role):
        # The workflow was changed, and has no such place.
        return None
    return turn._replace(started_after=base)


def _find_agent(snapshot: Snapshot, begun: BegunTurn) -> Node | None:
    with suppress(UwfError):
        return get_typed(snapshot, begun.agent, AGENT_CONFIG)
    agent = build_agent(dict(begun.payload), timestamp=snapshot.commit.time_s * 1000)
    return agent if agent.hash == begun.agent else None


def record_before_end(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], play: Player
) -> bool:
    """Record or keep finished agents' output under the lock, at rest; return if the head moved."""
    head, snapshot = seen
    while True:
        # Each call keeps one finished step, and forgets its run.
        with suppress(WorkKept):
            keep_overtaken_work(store, caller, seen, play)
            break
    turn = find_begun_turn(store, caller, snapshot)
    if turn is None:
        return False
    # What cannot be read stays on disk, and does not keep the thread alive.
    with suppress(TurnFailed, RunDirUnusable):
        played = without_checks(turn, answer_turn(turn, play))
        record_turn(caller, head, turn, with_files(turn, played))
    return True


def keep_overtaken_work(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], play: Player
) -> None:
    """Keep finished runs of dead engines that began after a commit other than the head."""
    head, snapshot = seen
    base = snapshot.turn_start
    for tip in list_finished_runs(store, head.thread):
        if tip == base:
            continue
        try:
            turn = _rebuild_turn(store, caller, read_snapshot(store, tip), tip)
        except UwfError:
            turn = None
        if turn is None:
            # The run stays on disk until the thread has ended.
            continue
        try:
            answered = answer_turn(turn, play)
        except RunDirUnusable:
            # Half of the run is gone: its engine died while it removed what it had recorded.
            forget_run(store, head.thread, tip)
            continue
        played = without_checks(turn, answered)
        # An engine that died after it recorded the turn had its checks run.
        results = [played] if played is answered else [played, answered]
        may_be = [build_turn(turn, each).nodes[0] for each in results]
        if not _is_recorded(store, head, may_be, after=tip):
            with suppress(HeadMoved):
                record_turn(caller, Head(head.thread, tip, archived=False), turn, played)
        forget_run(store, head.thread, tip)


def _is_recorded(store: Store, head: Head, new: Sequence[Node], *, after: Oid) -> bool:
    """Check whether the thread has a node of *new* after *after*: an engine may have died since."""
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
    # The dead engine took the times from its clock; here they come from the run's files.
    ignored = _TIMES | (_OF_CHECKS if len(new) > 1 else set())
    recorded = _without(next_move.get_node(name), ignored)
    return any(_without(each, ignored) == recorded for each in new)


def _without(node: Node, names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in node.payload.items() if name not in names}


# End a thread by a kill: stop its agents, record what they left, archive the thread.
#
# A kill that an agent asks for may end with that agent, whose descendant it is. So the request is
# written down first, and the step that records the agent ends the thread in its place.

_MOST_TRIES = 1000

_TICK_S = 0.01

# Longer than a kill waits for an engine.
_PATIENCE_S = 60.0


def end_by_kill(store: Store, caller: Caller, thread: ThreadId, *, reason: str) -> ThreadResult:
    """End an active thread and archive it; stop its agents first."""
    with (
        lock_stop(store, thread, since_ms=caller.now_ms()),
        _requested(store, thread, reason),
        lock_stopped(store, caller, thread, reason=reason or "the thread was killed"),
    ):
        fast_forward_from_tracking(store, thread)
        for _ in range(_MOST_TRIES):
            seen = read_active(store, thread)
            check_nothing_runs(store, seen[1])
            with suppress(HeadMoved):
                if record_before_end(store, caller, seen, agent_player(None)):
                    seen = read_active(store, thread)
                return end_thread(store, caller, seen, event="kill", body=reason)
        raise HeadMoved(thread)


def finish_kill(store: Store, caller: Caller, thread: ThreadId) -> bool:
    """End *thread* if a kill of it was cut short; return whether; a living killer goes first.

    The caller does not hold the thread's lock.
    """
    if find_kill_request(store, thread) is None:
        return False
    deadline = time.monotonic() + _PATIENCE_S
    while is_being_stopped(store, thread) and time.monotonic() < deadline:
        time.sleep(_TICK_S)
    reason = find_kill_request(store, thread)
    if reason is None:
        # The killer has ended the thread, or could not.
        return False
    debug("K6R0V3TD", "unfinished kill found", thread=thread)
    with suppress(ThreadNotActive):
        end_by_kill(store, caller, thread, reason=reason)
    return True


@contextmanager
def _requested(store: Store, thread: ThreadId, reason: str) -> Iterator[None]:
    """Write the request, and withdraw it if the kill fails.

    It stays in force after a signal, and where an engine that cannot be ended finishes the kill.
    """
    write_kill_request(store, thread, reason)
    try:
        yield
    except PlayedHere:
        raise
    except PlayedElsewhere as error:
        error.message += f"; thread {thread} is killed after that step"
        error.args = (error.message,)
        error.hint = f"{error.hint}; if its engine dies, the next step ends the thread"
        raise
    except Exception:
        forget_kill_request(store, thread)
        raise
