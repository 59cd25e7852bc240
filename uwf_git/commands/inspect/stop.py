"""Where a command leaves a thread: whose turn is next, and what to type then."""

import os
from typing import NamedTuple

from uwf_git.commands.agent_run.activity import RUNNING, may_be_active
from uwf_git.commands.turn.next_move import Advice, NextMove, advise, find_next_move
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_head
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


class Stop(NamedTuple):
    """Where a thread stands when a command ends."""

    next: str | None
    """The role that takes the next step, or ``$END``; None: the thread has ended, or the workflow
    does not tell."""

    advice: Advice


def read_stop(store: Store, text: str, *, default: str | None = None) -> Stop:
    """Return where the thread *text* stands now; *default* as for ``find_stop``.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: *text* names no thread, or several.
        StoreDamaged: the thread cannot be read.
    """
    head = resolve_head(store, text)
    return find_stop(store, read_snapshot(store, head.commit), default=default)


def find_stop(
    store: Store, snapshot: Snapshot, *, move: NextMove | None = None, default: str | None = None
) -> Stop:
    """Return where a thread stands at *snapshot*.

    *move* is its next move if that is known: a decision may cost a fork. *default* is the agent of
    unbound roles ($UWF_AGENT).

    Raises:
        StoreDamaged: the thread cannot be read.
    """
    move = find_next_move(snapshot) if move is None else move
    thread = snapshot.record.thread
    if snapshot.record.status == "split" and _is_at_work_elsewhere(store, thread):
        return Stop(move.role, _wait_for(thread))
    if may_be_active(store, thread):
        from uwf_git.commands.agent_run.running import (  # noqa: PLC0415 (costs 20 ms, and few threads are active)
            find_running,
            show_status,
        )

        running = find_running(store, thread)
        # A drive reports its end while it still holds the thread.
        is_own = running is not None and running.pid == os.getpid()
        if not is_own and show_status(snapshot.record.status, running) == RUNNING:
            return Stop(move.role, _wait_for(thread))
    return Stop(move.role, advise(store, snapshot, move, default=default))


def _wait_for(thread: ThreadId) -> Advice:
    return Advice(f"`uwf thread wait {thread}` waits until it stops", is_usual=True)


def _is_at_work_elsewhere(store: Store, thread: ThreadId) -> bool:
    """Return whether another process drives *thread*, or works on a branch of it."""
    from uwf_git.commands.agent_run.running import list_running  # noqa: PLC0415 (as above)

    return any(running.pid != os.getpid() for running in list_running(store, thread))
