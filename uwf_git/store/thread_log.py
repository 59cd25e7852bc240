"""Thread logs: what the background driver of a thread has said.

Owns: where it lies. Knows nothing of: who writes it, what is in it.
Always true: nothing is lost with it but words: what happened is in the commits.
"""

from uwf_git.model.thread_id import ThreadId
from uwf_git.store.durable import remove
from uwf_git.store.store import Store

LOGS = "logs"
LOG_SUFFIX = ".log"


def log_path(store: Store, thread: ThreadId) -> str:
    """Give the file for the log of *thread* in a kept store, whether it is there or not."""
    return store.local_path(LOGS, thread + LOG_SUFFIX)


def forget_log(store: Store, thread: ThreadId) -> None:
    """Remove the log of *thread*, if there is one."""
    if store.is_kept:
        remove(log_path(store, thread))
