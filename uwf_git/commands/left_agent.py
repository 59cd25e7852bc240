"""An agent left alone: its engine was killed, and the next one stays with it to its end.

Owns: watching it as its own engine would have: its limits, Ctrl-C, and whoever listens.
Knows nothing of: threads, what is recorded.
Always true: when `stay_with` returns, the agent has ended, by itself or by our hand; a daemon that
it left behind keeps nobody waiting, and what it printed is in its files.
"""

import os
import time
from contextlib import suppress
from typing import NamedTuple

from uwf_git.agents.request import (
    DEFAULT_GRACE_S,
    DEFAULT_MAX_OUTPUT_BYTES,
    Listener,
    Outcome,
)
from uwf_git.agents.spool import PID, STDERR, STDOUT, Running, look_up
from uwf_git.agents.stop_run import stop_run
from uwf_git.debug_log import debug
from uwf_git.store.file_lock import is_held

_AT_WORK = b"the agent of a step that was cut short is still at work; waiting for it\n"

# Nobody tells us of its end: we are not its parent.
_TICK_S = 0.05


class LeftRun(NamedTuple):
    """The run of an agent whose engine was killed."""

    run_dir: str
    alive: str
    """The lock that the agent holds as long as it lives."""

    timeout_s: float | None
    """How long it may take from its beginning; None: as long as it takes."""


def stay_with(run: LeftRun, listener: Listener) -> Outcome | None:
    """Wait until an agent has ended, or bring its end about.

    Returns:
        Why we ended it; None if it ended by itself, which its files tell of.
    """
    try:
        if listener.on_stderr is not None:
            listener.on_stderr(_AT_WORK)
        outcome = _watch(run, listener)
    except KeyboardInterrupt:
        outcome = "interrupted"
    debug("VPF38SEH", "left agent ended", run=run.run_dir, outcome=outcome)
    if outcome is not None:
        # Another Ctrl-C may cost its last words, and not the run.
        grace_s = DEFAULT_GRACE_S
        for _ in range(2):
            try:
                stop_run(
                    run.run_dir, run.alive, grace_s=grace_s, is_held=lambda: is_held(run.alive)
                )
                break
            except KeyboardInterrupt:
                grace_s = 0
    return outcome


def _watch(run: LeftRun, listener: Listener) -> Outcome | None:
    left_s = None if run.timeout_s is None else run.timeout_s - _find_age_s(run)
    deadline = None if left_s is None else time.monotonic() + left_s
    while isinstance(look_up(run.run_dir, alive_is_held=is_held(run.alive)), Running):
        listener.on_tick()
        if _is_over_limit(run):
            return "too-much-output"
        if deadline is not None and time.monotonic() >= deadline:
            return "timed-out"
        time.sleep(_TICK_S)
    return None


def _find_age_s(run: LeftRun) -> float:
    try:
        return max(0.0, time.time() - os.stat(os.path.join(run.run_dir, PID)).st_mtime)
    except FileNotFoundError:
        # Its shell has only just begun.
        return 0.0


def _is_over_limit(run: LeftRun) -> bool:
    for name in (STDOUT, STDERR):
        with suppress(FileNotFoundError):
            if os.stat(os.path.join(run.run_dir, name)).st_size > DEFAULT_MAX_OUTPUT_BYTES:
                return True
    return False
