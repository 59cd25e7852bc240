"""Check that no agent is at work on a thread before the thread is ended or moved.

Otherwise its result could not be recorded any more, and the user would believe that it stopped.
"""

import os

from uwf_git.agents.run_files import RunAlive
from uwf_git.agents.stop_run import find_group
from uwf_git.commands.agent_run.runs import read_state
from uwf_git.errors import Conflict
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.run_dir import get_run_dir, list_check_runs
from uwf_git.store.threads.snapshot import Snapshot


class AgentLeftRunning(Conflict):
    """The agent of an interrupted step is still at work."""

    code = "agent-left-running"

    def __init__(self, thread: ThreadId, group: int | None) -> None:
        where = (
            f" (process group {group})"
            if group
            else "; it cannot be seen from here, so another user, container or machine runs it"
        )
        end_it = f"`kill -- -{group}` ends it" if group else "end it there"
        super().__init__(
            f"thread {thread} still has an agent at work, whose engine was killed{where}",
            hint=f"{end_it}, and `uwf thread step {thread}` waits for it and takes its result",
            thread=thread,
            group=None if group is None else str(group),
        )


def check_nothing_runs(store: Store, snapshot: Snapshot) -> None:
    """Check that no agent is at work on the step after *snapshot*; the caller holds the lock.

    Raises:
        AgentLeftRunning: one is.
    """
    thread = snapshot.record.thread
    agent = get_run_dir(store, thread, snapshot.turn_start)
    for run in (agent, *list_check_runs(store, thread)):
        if os.path.exists(run.alive) and isinstance(read_state(run), RunAlive):
            raise AgentLeftRunning(thread, find_group(run.path, run.alive))
