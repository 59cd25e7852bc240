"""Wait for an agent whose engine was killed, with the same limits, Ctrl-C and listener.

When `wait_for_orphan` returns, the agent has ended; a daemon that it left behind does not count.
"""

import os
import time
from contextlib import suppress
from itertools import count

from uwf_git.agents.group import check_cancelled
from uwf_git.agents.request import (
    DEFAULT_GRACE_S,
    DEFAULT_MAX_OUTPUT_BYTES,
    Listener,
    RunOutcome,
)
from uwf_git.agents.run_files import (
    STDERR,
    STDOUT,
    RunAlive,
    RunState,
    find_run_start_ms,
    read_run_state,
)
from uwf_git.agents.stop_run import stop_run
from uwf_git.commands.agent_run.runs import read_found_state
from uwf_git.debug_log import debug
from uwf_git.store.threads.run_dir import RunDir

_AT_WORK = b"the agent of an interrupted step is still at work; waiting for it\n"

# Only a parent is told of a process's end, so this is polled.
_TICK_S = 0.05
_LOOK_TICKS = 10


def wait_for_orphan(
    run: RunDir, listener: Listener, *, timeout_s: float | None
) -> RunOutcome | None:
    """Wait until an agent has ended; end it at a limit, at Ctrl-C, or if it has done its part.

    *timeout_s* counts from the agent's start. Return why it was ended; None if it ended by itself.
    """
    try:
        if listener.on_stderr is not None:
            listener.on_stderr(_AT_WORK)
        outcome = _watch(run, listener, timeout_s)
    except KeyboardInterrupt:
        outcome = "interrupted"
    debug("VPF38SEH", "orphaned agent ended", run=run.path, outcome=outcome)
    if outcome is not None:
        _stop(run)
    return outcome


def _watch(run: RunDir, listener: Listener, timeout_s: float | None) -> RunOutcome | None:
    left_s = None if timeout_s is None else timeout_s - _find_age_s(run)
    deadline = None if left_s is None else time.monotonic() + left_s
    for tick in count():
        # The search for who holds the lock may go through all processes.
        look = read_found_state if tick % _LOOK_TICKS == 0 else _read_state
        if not isinstance(look(run, is_held=run.is_alive()), RunAlive):
            break
        listener.on_tick()
        check_cancelled()
        if listener.is_done():
            return "dismissed"
        if _is_over_limit(run):
            return "too-much-output"
        if deadline is not None and time.monotonic() >= deadline:
            return "timed-out"
        time.sleep(_TICK_S)
    return None


def _read_state(run: RunDir, *, is_held: bool) -> RunState:
    return read_run_state(run.path, alive_is_held=is_held)


def _stop(run: RunDir) -> None:
    """Stop the agent; a second Ctrl-C kills it at once, and the run is still recorded."""
    try:
        stop_run(run.path, run.alive, grace_s=DEFAULT_GRACE_S, is_held=run.is_alive)
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt):
            stop_run(run.path, run.alive, grace_s=0, is_held=run.is_alive)


def _find_age_s(run: RunDir) -> float:
    start_ms = find_run_start_ms(run.path)
    # Without a pid file its shell has only just begun.
    return 0.0 if start_ms is None else max(0.0, time.time() - start_ms / 1000)


def _is_over_limit(run: RunDir) -> bool:
    for name in (STDOUT, STDERR):
        with suppress(FileNotFoundError):
            if os.stat(os.path.join(run.path, name)).st_size > DEFAULT_MAX_OUTPUT_BYTES:
                return True
    return False
