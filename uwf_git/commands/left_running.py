"""Left running: the agent of a step whose engine was killed.

Owns: knowing of one before its thread is ended. Knows nothing of: how agents are run.
Always true: a thread that was ended has no agent at work that this machine knows of; nobody
would ever take its result, and whoever ended the thread would believe that it has stopped.
"""

import os

from uwf_git.agents.spool import PID, Running, look_up
from uwf_git.commands.play_agent import ALIVE
from uwf_git.errors import Conflict
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.file_lock import hold_lock
from uwf_git.store.history import find_base
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store


class AgentLeftRunning(Conflict):
    """The agent of a step that was cut short is still at work."""

    code = "agent-left-running"

    def __init__(self, thread: ThreadId, group: str) -> None:
        end_it = f"`kill -- -{group}` ends it" if group else "end it"
        super().__init__(
            f"thread {thread} still has an agent at work, whose engine was killed"
            + (f" (process group {group})" if group else ""),
            hint=f"{end_it}, and `uwf thread step {thread}` waits for it and takes its result",
            thread=thread,
            group=group or None,
        )


def check_nothing_runs(store: Store, snapshot: Snapshot) -> None:
    """Make sure that no agent is at work on the step after *snapshot*; the caller holds the lock.

    Raises:
        AgentLeftRunning: one is.
    """
    if not store.is_kept:
        return
    thread = snapshot.record.thread
    run_dir = store.local_path("run", thread, find_base(store, snapshot))
    if not os.path.exists(run_dir + ALIVE):
        return
    with hold_lock(run_dir + ALIVE, wait=False) as alive:
        if isinstance(look_up(run_dir, alive_is_held=alive is None), Running):
            raise AgentLeftRunning(thread, _read_group(run_dir))


def _read_group(run_dir: str) -> str:
    try:
        with open(os.path.join(run_dir, PID), encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""
