"""`uwf thread kill`: a thread ends because somebody says so."""

from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.end_thread import end_thread
from uwf_git.commands.left_running import check_nothing_runs
from uwf_git.commands.take_over import take_over_tracked
from uwf_git.commands.thread_errors import read_active
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import lock_thread


class Killed(NamedTuple):
    """A thread that was ended."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash


def kill_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> Killed:
    """End the thread that *text* means, and archive it.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: there is none to end.
        ThreadBusy: a step is under way.
        EndedElsewhere: it has ended at a remote, without what is here.
        AgentLeftRunning: the agent of a step that was cut short is.
    """
    thread = read_active(store, text)[0].thread
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        take_over_tracked(store, thread)
        seen = read_active(store, thread)
        check_nothing_runs(store, seen[0])
        end_thread(store, caller, seen, outcome="killed", body=reason)
        record = seen[1].record
        return Killed(record.workflow, record.thread, record.node)
