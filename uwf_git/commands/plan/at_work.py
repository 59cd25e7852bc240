"""Whether somebody is at work on the plans of a directory."""

from collections.abc import Iterator
from contextlib import contextmanager

from uwf_git.commands.agent_run.running import is_any_at_work
from uwf_git.commands.split.family import Family
from uwf_git.errors import Conflict
from uwf_git.model.names import ThreadId
from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.store import Store
from uwf_git.store.threads.lock import find_driver


class PlansAtWork(Conflict):
    """An agent, or whoever drives, is at work on the plans of the directory."""

    code = "plans-at-work"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} is at work on the plans of this directory",
            hint=f"`uwf thread wait {thread}` waits for it, `uwf thread kill {thread}` ends it; "
            "`uwf plan status` tells more",
            thread=thread,
        )


def require_rest(store: Store, thread: ThreadId) -> None:
    """Check that nobody is at work on *thread*.

    Raises:
        PlansAtWork: somebody is.
    """
    if is_any_at_work(store, Family(store, thread)):
        raise PlansAtWork(thread)


def require_no_driver(store: Store, thread: ThreadId) -> None:
    """Check that no process drives *thread*; an agent may have outlived its driver.

    Raises:
        PlansAtWork: one does.
    """
    if find_driver(store, thread) is not None:
        raise PlansAtWork(thread)


@contextmanager
def hold_plans(store: Store) -> Iterator[None]:
    """Let no other process begin plans in *store*, or write their views, meanwhile."""
    with hold_lock(store.local_path("locks", "plans"), wait=True):
        yield
