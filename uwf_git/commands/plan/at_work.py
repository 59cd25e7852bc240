"""Whether somebody is at work on the plans of a directory."""

from uwf_git.commands.agent_run.running import is_any_at_work
from uwf_git.commands.split.family import Family
from uwf_git.errors import Conflict
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.store import Store


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
