"""Stopping an agent that is at work, whoever started it.

Owns: making an end to the runs of a thread from another process.
Knows nothing of: why. Always true: what the agent had printed is recorded as a failed try, by the
engine that runs it, or by the next step if that engine is dead. Only processes of this machine
and this user, in the agent's own process group, can be ended like this.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from uwf_git.agents.request import DEFAULT_GRACE_S
from uwf_git.agents.stop_run import find_group, stop_run
from uwf_git.commands.caller import Caller
from uwf_git.commands.play_agent import ALIVE, list_runs, write_stop_reason
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.file_lock import is_held
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, find_holder, lock_thread

_TICK_S = 0.02

# An engine has nothing left to do then but to record.
_PATIENCE_S = 30.0


def find_agent_group(store: Store, thread: ThreadId) -> int | None:
    """Give the process group of the agent that is at work on *thread*; None if there is none."""
    for run_dir in list_runs(store, thread):
        group = find_group(run_dir, run_dir + ALIVE)
        if group is not None:
            return group
    return None


def stop_agents(store: Store, thread: ThreadId, *, reason: str) -> bool:
    """End what is at work on *thread*, and wait until whoever ran it has recorded what was left.

    Nothing new begins only if the caller has seen to that (a pause, ``lock_stop``).

    Returns:
        Whether an agent was stopped.

    Raises:
        ThreadBusy: the engine did not come to an end, though its agent did.
    """
    stopped = False
    deadline = time.monotonic() + DEFAULT_GRACE_S + _PATIENCE_S
    while True:
        # Each of them: somebody may have moved the thread since an agent began.
        for run_dir in list_runs(store, thread):
            stopped |= _stop(run_dir, reason)
        holder = find_holder(store, thread)
        if holder is None:
            return stopped
        if time.monotonic() >= deadline:
            pid = holder.get("pid")
            raise ThreadBusy(
                thread, holder, hint=f"it does not come to an end; `kill {pid}` would end it"
            )
        time.sleep(_TICK_S)


@contextmanager
def lock_stopped(store: Store, caller: Caller, thread: ThreadId, *, reason: str) -> Iterator[None]:
    """Hold *thread* when nothing is at work on it any more; the caller holds ``lock_stop``.

    Raises:
        ThreadBusy: as ``stop_agents``; or somebody whom this machine does not know holds it.
    """
    deadline = time.monotonic() + DEFAULT_GRACE_S + _PATIENCE_S
    with ExitStack() as stack:
        while True:
            stop_agents(store, thread, reason=reason)
            try:
                stack.enter_context(lock_thread(store, thread, since_ms=caller.now_ms()))
                break
            except ThreadBusy as busy:
                # Who has only come to learn that nothing may begin is gone in a moment.
                if time.monotonic() >= deadline or not busy.facts["holder"]:
                    raise
        yield


def _stop(run_dir: str, reason: str) -> bool:
    alive = run_dir + ALIVE
    if find_group(run_dir, alive) is None:
        return False
    # It was recorded and forgotten just now.
    with suppress(OSError):
        write_stop_reason(run_dir, reason)
    return stop_run(run_dir, alive, grace_s=DEFAULT_GRACE_S, is_held=lambda: is_held(alive))
