"""End a thread by a kill: stop its agents, record what they left, archive the thread.

A kill that an agent asks for may end with that agent, whose descendant it is. So the request is
written down first, and the step that records the agent ends the thread in its place.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from uwf_git.commands.agent_run.check_idle import check_nothing_runs
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.stop_agent import lock_stopped
from uwf_git.commands.caller import Caller
from uwf_git.commands.remote.fast_forward import fast_forward_from_tracking
from uwf_git.commands.step.end_thread import end_thread
from uwf_git.commands.step.left_work import record_before_end
from uwf_git.commands.turn.active_thread import ThreadNotActive, read_active
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.debug_log import debug
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved
from uwf_git.store.threads.lock import (
    find_kill_request,
    forget_kill_request,
    is_being_stopped,
    lock_stop,
    write_kill_request,
)

_MOST_TRIES = 1000

_TICK_S = 0.01

# Longer than a kill waits for an engine.
_PATIENCE_S = 60.0


def end_by_kill(store: Store, caller: Caller, thread: ThreadId, *, reason: str) -> ThreadResult:
    """End an active thread and archive it; stop its agents first.

    If this process is ended together with an agent, ``finish_kill`` goes on.

    Raises:
        ThreadNotActive: it has ended.
        ThreadBusy: another process is ending the thread, or the engine does not end.
        EndedElsewhere: the thread has ended at a remote, without the commits made here.
        AgentLeftRunning: an agent cannot be stopped from here.
        HeadMoved: other processes moved the head at every try.
    """
    with (
        lock_stop(store, thread, since_ms=caller.now_ms()),
        _withdrawn_on_failure(store, thread),
        lock_stopped(
            store,
            caller,
            thread,
            reason=reason or "the thread was killed",
            before=lambda: write_kill_request(store, thread, reason),
        ),
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
    """End *thread* if a kill of it was cut short; a killer that lives is waited for.

    Return whether it has ended so. The caller does not hold the thread's lock.

    Raises:
        What ``end_by_kill`` raises, but for ``ThreadNotActive``.
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
def _withdrawn_on_failure(store: Store, thread: ThreadId) -> Iterator[None]:
    """Withdraw the request if the kill fails; a signal leaves it in force."""
    try:
        yield
    except Exception:
        forget_kill_request(store, thread)
        raise
