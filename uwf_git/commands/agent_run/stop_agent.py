"""Stop an agent that is at work, whichever process started it.

What it printed is recorded as a failed attempt by its engine, or by the next step if the engine is
dead. Only processes of this machine and user, in the agent's process group, can be stopped.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from uwf_git.agents.group import leave_group
from uwf_git.agents.request import DEFAULT_GRACE_S
from uwf_git.agents.stop_run import find_group, stop_run
from uwf_git.commands.caller import Caller
from uwf_git.model.event_words import first_line
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.lock import ThreadBusy, find_holder, is_stopped, lock_thread
from uwf_git.store.threads.run_dir import RunDir, list_check_runs, list_run_dirs

_TICK_S = 0.02

# The engine only has to record the attempt then.
_PATIENCE_S = 30.0


def _nothing() -> None:
    return None


def stop_agents(
    store: Store, thread: ThreadId, *, reason: str, before: Callable[[], None] = _nothing
) -> bool:
    """Stop the agents of *thread*, wait for their engines to record; return whether there were any.

    The caller prevents new steps (a pause, ``lock_stop``). *before* is called before an agent is
    stopped: one that called this process may take it along.

    Raises:
        ThreadBusy: the agent has ended, but its engine has not; at once if that is stopped itself.
    """
    stopped = False
    deadline = time.monotonic() + DEFAULT_GRACE_S + _PATIENCE_S
    while True:
        # All of them: the thread may have moved since an agent began.
        for run in (*list_run_dirs(store, thread), *list_check_runs(store, thread)):
            stopped |= _stop(run, reason, before)
        holder = find_holder(store, thread)
        if holder is None:
            return stopped
        # A stopped process records nothing, however long this waits.
        if is_stopped(holder) or time.monotonic() >= deadline:
            pid = holder.get("pid")
            raise ThreadBusy(
                thread, holder, hint=f"it does not end by itself; `kill {pid}` ends it"
            )
        time.sleep(_TICK_S)


@contextmanager
def lock_stopped(
    store: Store,
    caller: Caller,
    thread: ThreadId,
    *,
    reason: str,
    before: Callable[[], None] = _nothing,
) -> Iterator[None]:
    """Stop the agents of *thread* and hold its lock; the caller holds ``lock_stop``.

    *before* is called before an agent is stopped.

    Raises:
        ThreadBusy: as ``stop_agents``; or a process of another machine holds the lock.
    """
    deadline = time.monotonic() + DEFAULT_GRACE_S + _PATIENCE_S
    with ExitStack() as stack:
        while True:
            stop_agents(store, thread, reason=reason, before=before)
            try:
                stack.enter_context(lock_thread(store, thread, since_ms=caller.now_ms()))
                break
            except ThreadBusy as busy:
                # A new step that is about to find lock_stop releases the lock in a moment.
                if time.monotonic() >= deadline or not busy.facts["holder"]:
                    raise
        yield


def _stop(run: RunDir, reason: str, before: Callable[[], None]) -> bool:
    group = find_group(run.path, run.alive)
    if group is None:
        return False
    before()
    leave_group(group, run.alive)
    # The folder is gone if the run was recorded just now.
    with suppress(OSError):
        run.write_stop_reason(first_line(reason))
    return stop_run(run.path, run.alive, grace_s=DEFAULT_GRACE_S, is_held=run.is_alive)
