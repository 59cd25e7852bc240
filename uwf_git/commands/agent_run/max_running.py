"""`uwf.maxRunning`: at most so many agents at once.

An agent whose engine died still counts; a daemon that an agent left behind does not. Waiting ends
when the thread is paused, ended or moved. An agent that works for another agent never waits, since
that one would keep its own slot meanwhile.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from uwf_git.agents.cancel import check_cancelled
from uwf_git.agents.request import Listener
from uwf_git.agents.run_files import RunAlive
from uwf_git.commands.agent_run.runs import read_found_state
from uwf_git.commands.turn.active_thread import ThreadNotReady, read_active
from uwf_git.commands.turn.ancestors import check_ancestors
from uwf_git.commands.turn.turn import Turn
from uwf_git.debug_log import debug
from uwf_git.errors import Refused
from uwf_git.processes import read_process_start
from uwf_git.store.git.config import GitConfig
from uwf_git.store.threads.heads import HeadMoved, find_head
from uwf_git.store.threads.lock import check_not_stopped
from uwf_git.store.threads.run_dir import RunDir

MAX_RUNNING = "uwf.maxRunning"

_MOST = 10_000


def read_max_running(config: GitConfig) -> int:
    """Return how many agents may run at once; 0 is no limit.

    Raises:
        Refused: the setting is not a number in range.
    """
    text = config.get(MAX_RUNNING)
    if not text:
        return 0
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST))
    if not is_number or int(text) > _MOST:
        raise Refused(
            f"{MAX_RUNNING} is {text[:40]!r}, not a number from 0 to {_MOST}",
            code="bad-max-running",
            hint=f"set it again: `uwf config set {MAX_RUNNING} 2` (0 is no limit)",
            setting=MAX_RUNNING,
        )
    return int(text)


@contextmanager
def running_slot(turn: Turn, listener: Listener) -> Iterator[tuple[int, ...]]:
    """Wait until one more agent may run; yield the descriptors that it has to inherit.

    While waiting, *listener* gets one note and its ticks.

    Raises:
        Refused
        Refused, LockingUnsupported: agents cannot be counted here.
        ThreadNotReady, ThreadNotActive, ThreadBusy, HeadMoved: the turn is no longer due.
    """
    limit = read_max_running(turn.store.config)
    if not limit:
        yield ()
        return
    from uwf_git.store.disk.slots import (  # noqa: PLC0415 (costs 2 ms, and few have a limit)
        SlotRequest,
        hold_slot,
        slots_folder,
    )

    pid = os.getpid()
    request = SlotRequest(
        folder=slots_folder(turn.environ),
        limit=limit,
        holder={"pid": pid, "start": read_process_start(pid), "runDir": turn.run_dir.path},
        counts=_counts,
        on_wait=_Waiting(turn, listener),
        waits=not _works_for_an_agent(turn.environ),
    )
    with hold_slot(request) as descriptor:
        yield () if descriptor is None else (descriptor,)


def _works_for_an_agent(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("UWF_THREAD_ID"))


def _counts(told: Mapping[str, Any]) -> bool:
    """Return whether the agent of a held slot runs, or is about to."""
    pid, start, run_dir = told.get("pid"), told.get("start"), told.get("runDir")
    if isinstance(pid, int) and (start is None or read_process_start(pid) == start):
        # The engine lives; it empties the slot when the agent has ended.
        return True
    return isinstance(run_dir, str) and _is_at_work(run_dir)


def _is_at_work(run_dir: str) -> bool:
    return os.path.isdir(run_dir) and isinstance(
        read_found_state(RunDir(run_dir), is_held=True), RunAlive
    )


class _Waiting:
    """Called while there is no slot: notes the wait once and watches the thread."""

    def __init__(self, turn: Turn, listener: Listener) -> None:
        self._turn, self._listener = turn, listener
        self._seen = turn.snapshot.commit.oid
        self._is_said = False

    def __call__(self, running: int) -> None:
        if not self._is_said:
            debug("W9P0210X", "no slot", thread=self._turn.thread, running=running)
        if not self._is_said and self._listener.on_stderr is not None:
            self._listener.on_stderr(_note(running))
        self._is_said = True
        self._listener.on_tick()
        check_cancelled()
        self._check_wanted()

    def _check_wanted(self) -> None:
        """Check that the turn is still due."""
        store, thread = self._turn.store, self._turn.thread
        check_not_stopped(store, thread)
        if self._turn.snapshot.record.parent_thread is not None:
            check_ancestors(store, self._turn.snapshot)
        seen = find_head(store, thread)
        if seen is not None and seen.commit == self._seen:
            return
        head, snapshot = read_active(store, thread)
        if snapshot.record.status == "paused":
            raise ThreadNotReady(store, snapshot)
        if snapshot.turn_start != self._turn.started_after:
            raise HeadMoved(thread)
        self._seen = head.commit


def _note(running: int) -> bytes:
    if running == 0:
        return b"note: other steps already wait for an agent to end (uwf.maxRunning); waiting\n"
    run = "agent runs" if running == 1 else "agents run"
    return f"note: {running} {run} already ({MAX_RUNNING}); waiting\n".encode()
