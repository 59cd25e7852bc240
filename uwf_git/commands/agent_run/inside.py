"""Whether this process belongs to an agent that a thread waits for.

Such a process can never see the end of that thread's work: the thread waits for the process itself.
"""

import os
from collections.abc import Mapping
from typing import Any

from uwf_git.commands.agent_run.running import is_at_work
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.processes import read_process
from uwf_git.store.store import Store
from uwf_git.store.threads.lock import find_driver, find_holder

THREAD_VARIABLE = "UWF_THREAD_ID"
"""Names the thread of an agent, in the environment of the agent."""


def _inside_thread(thread: ThreadId) -> Refused:
    return Refused(
        f"thread {thread} waits for the agent that runs this command, so its work cannot end "
        "before this command does",
        code="inside-thread",
        hint="end the agent with its result, and wait outside of it",
        thread=thread,
    )


def refuse_inside(store: Store, thread: ThreadId, environ: Mapping[str, str]) -> None:
    """Check that *thread* does not wait for this process, which has the environment *environ*.

    Raises:
        Refused: this process belongs to its agent, or to an agent below that one.
    """
    own = environ.get(THREAD_VARIABLE)
    if own == thread and is_at_work(store, thread):
        raise _inside_thread(thread)
    # Without the variable it is no agent: a program may run threads and wait for them.
    if own and (
        _is_ancestor(find_holder(store, thread)) or _is_ancestor(find_driver(store, thread))
    ):
        raise _inside_thread(thread)


def _is_ancestor(holder: dict[str, Any] | None) -> bool:
    """Check whether the *holder* of a lock is a process that started this one."""
    process = read_process(os.getppid())
    while holder is not None and process is not None:
        if (process.pid, process.start) == (holder.get("pid"), holder.get("start")):
            return True
        process = read_process(process.parent)
    return False
