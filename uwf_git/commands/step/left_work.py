"""Work of dead engines: take up the turn that is under way, keep turns that were overtaken.

A run directory names the role and the agent of its turn, so that no later decision (a patch of the
state, another binding) can lead to another turn in its place. Law 8: nothing is paid for twice.
"""

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from uwf_git.agents.run_files import RunAlive, RunDirUnusable, RunNotStarted
from uwf_git.commands.agent_run.runs import (
    BegunTurn,
    forget_run,
    list_finished_runs,
    read_begun_turn,
    read_state,
)
from uwf_git.commands.caller import Caller
from uwf_git.commands.step.play_turn import answer_turn, without_checks
from uwf_git.commands.step.record_turn import TurnFailed, WorkKept, build_turn, record_turn
from uwf_git.commands.turn.choose_agent import Choice, build_agent, choose_agent
from uwf_git.commands.turn.decide import find_turn_place
from uwf_git.commands.turn.keep import read_keep_rules
from uwf_git.commands.turn.retries import read_retry
from uwf_git.commands.turn.turn import Player, Turn
from uwf_git.errors import UwfError
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.event_rules import CONTROLS
from uwf_git.model.node import Node
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_workflow
from uwf_git.store.threads.heads import Head, HeadMoved
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.threads.run_dir import get_run_dir
from uwf_git.store.threads.snapshot import Snapshot, get_typed, read_snapshot

_TIMES = {"startedAt", "durationMs"}
# What checks printed, and how they ended.
_OF_CHECKS = {"stderr", "error", "exitCode"}
_NO_CHOICE = Choice()


def find_begun_turn(
    store: Store, caller: Caller, snapshot: Snapshot, *, choice: Choice = _NO_CHOICE
) -> Turn | None:
    """Return the turn that a dead engine began at this place of a thread; None if there is none.

    Its agent is at work, has ended or was lost. A *choice* of another agent than the one at work
    is not overruled: playing that turn says that the other one works.
    """
    base = snapshot.turn_start
    run = get_run_dir(store, snapshot.record.thread, base)
    # Most steps find no folder, and then create no lock file either.
    state = read_state(run) if os.path.isdir(run.path) else RunNotStarted()
    if isinstance(state, RunNotStarted):
        return None
    turn = _rebuild_turn(store, caller, snapshot, base)
    if turn is None or not (choice.agents and isinstance(state, RunAlive)):
        return turn
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
    place = find_turn_place(snapshot, begun.at)
    if (place is None) != (begun.at is None) or (place is not None and place.role != begun.role):
        # The workflow was changed, and has no such place.
        return None
    return Turn(
        store,
        snapshot,
        present.begin_tries(begun.at),
        base,
        begun.role,
        agent,
        caller.environ,
        # It has run, or runs: its work directory was chosen when it began.
        find_workdir(store, snapshot.record.thread) or caller.cwd,
        retry=read_retry(store.config, agent.payload, place),
        keep=read_keep_rules(store.config),
        place=place,
    )


def _find_agent(snapshot: Snapshot, begun: BegunTurn) -> Node | None:
    with suppress(UwfError):
        return get_typed(snapshot, begun.agent, AGENT_CONFIG)
    agent = build_agent(dict(begun.payload), timestamp=snapshot.commit.time_s * 1000)
    return agent if agent.hash == begun.agent else None


def record_before_end(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], play: Player
) -> bool:
    """Record or keep what finished agents left, before the thread ends; return if the head moved.

    The caller holds the lock, and no agent is at work.
    """
    head, snapshot = seen
    _keep_all_overtaken_work(store, caller, seen, play)
    turn = find_begun_turn(store, caller, snapshot)
    if turn is None:
        return False
    # What cannot be read stays on disk, and does not keep the thread alive.
    with suppress(TurnFailed, RunDirUnusable):
        record_turn(caller, head, turn, without_checks(turn, answer_turn(turn, play)))
    return True


def _keep_all_overtaken_work(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], play: Player
) -> None:
    while True:
        # Each call keeps one finished step, and forgets its run.
        try:
            keep_overtaken_work(store, caller, seen, play)
        except WorkKept:
            continue
        return


def keep_overtaken_work(
    store: Store, caller: Caller, seen: tuple[Head, Snapshot], play: Player
) -> None:
    """Keep finished runs of dead engines that began after a commit other than the head.

    The thread was moved without its lock meanwhile, as by a plain `git push` into this store.

    Raises:
        WorkKept: there was such a run; the next step is free of it.
    """
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
    """Check whether the thread has one of the nodes *new* after the commit *after*.

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
    # The dead engine took the times from its clock; here they come from the run's files.
    ignored = _TIMES | (_OF_CHECKS if len(new) > 1 else set())
    recorded = _without(next_move.get_node(name), ignored)
    return any(_without(each, ignored) == recorded for each in new)


def _without(node: Node, names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in node.payload.items() if name not in names}
