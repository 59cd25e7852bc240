"""`uwf thread kill`: end a thread and archive it; a running agent is stopped first.

No step can begin meanwhile. What a stopped agent printed is recorded first, and so is what the
agent of a dead engine has finished.
"""

from contextlib import suppress

from uwf_git.commands.agent_run.check_idle import check_nothing_runs
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.stop_agent import lock_stopped
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.steer import MOST_TRIES
from uwf_git.commands.remote.fast_forward import fast_forward_from_tracking
from uwf_git.commands.step.end_thread import end_thread
from uwf_git.commands.step.left_work import record_before_end
from uwf_git.commands.turn.active_thread import read_active
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved
from uwf_git.store.threads.lock import lock_stop


def kill_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """End a thread and archive it; stop its agent first.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: no active thread matches.
        ThreadBusy: another process is ending the thread, or the engine does not end.
        EndedElsewhere: the thread has ended at a remote, without the commits made here.
        AgentLeftRunning: the engine is dead and its agent cannot be stopped from here: another
            user or machine runs it, it left its process group, or its pid is unknown.
        HeadMoved: other processes moved the head at every try.
    """
    thread = read_active(store, text)[0].thread
    why = reason or "the thread was killed"
    with (
        lock_stop(store, thread, since_ms=caller.now_ms()),
        lock_stopped(store, caller, thread, reason=why),
    ):
        fast_forward_from_tracking(store, thread)
        for _ in range(MOST_TRIES):
            seen = read_active(store, thread)
            check_nothing_runs(store, seen[1])
            with suppress(HeadMoved):
                if record_before_end(store, caller, seen, agent_player(None)):
                    seen = read_active(store, thread)
                return end_thread(store, caller, seen, event="kill", body=reason)
        raise HeadMoved(thread)
