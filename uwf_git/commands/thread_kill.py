"""`uwf thread kill`: a thread ends because somebody says so.

Owns: ending what is at work on it first. Always true: no step begins meanwhile, and what a stopped
agent had printed is recorded by its engine, if that lives.
"""

from contextlib import suppress
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.end_thread import end_thread
from uwf_git.commands.left_running import check_nothing_runs
from uwf_git.commands.steer import MOST_TRIES
from uwf_git.commands.stop_agent import lock_stopped
from uwf_git.commands.take_over import take_over_tracked
from uwf_git.commands.thread_errors import read_active
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import HeadMoved
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import lock_stop


class Killed(NamedTuple):
    """A thread that was ended."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash


def kill_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> Killed:
    """End the thread that *text* means, and archive it; an agent that is at work is ended first.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: there is none to end.
        ThreadBusy: somebody else ends it, or its engine does not come to an end.
        EndedElsewhere: it has ended at a remote, without what is here.
        AgentLeftRunning: its engine is dead, and its agent cannot be ended from here: it is another
            user's or another machine's, it has left its process group, or has not said its number.
        HeadMoved: it moves faster than it can be ended.
    """
    thread = read_active(store, text)[0].thread
    why = reason or "the thread was killed"
    with (
        lock_stop(store, thread, since_ms=caller.now_ms()),
        lock_stopped(store, caller, thread, reason=why),
    ):
        take_over_tracked(store, thread)
        for _ in range(MOST_TRIES):
            seen = read_active(store, thread)
            check_nothing_runs(store, seen[1])
            with suppress(HeadMoved):
                end_thread(store, caller, seen, outcome="killed", body=reason)
                record = seen[1].record
                return Killed(record.workflow, record.thread, record.node)
        raise HeadMoved(thread)
