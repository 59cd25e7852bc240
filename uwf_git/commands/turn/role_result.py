"""Whether the result of a workflow that plays a role of a graph fits it, and what to do if not."""

from typing import Any

from uwf_git.commands.turn.check_meta import find_role_problem
from uwf_git.commands.turn.decide import decide_next
from uwf_git.errors import Refused, UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import END
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_workflow
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_AGAIN = "`uwf thread poke {thread} -m '…'` has the last step taken again"
_ANEW = "`uwf thread fork {parent}` begins a thread in which the role is played anew"
_OTHERWISE = (
    "no agent took its last step, so none can take it again: `uwf thread fork {parent}` begins a "
    "thread before the role's turn, and `uwf thread amend` can give that one another workflow"
)


class MetaUnfit(Refused):
    """A workflow plays a role of a graph, and its result does not fit the role."""

    code = "meta-unfit"

    def __init__(self, thread: ThreadId, parent: ThreadId, problem: str, hint: str) -> None:
        super().__init__(
            f"the result of thread {thread} does not fit its role in {parent}: {problem}",
            hint=hint.format(thread=thread, parent=parent),
            thread=thread,
            parent=parent,
        )


def find_unfit(tip: Snapshot, branch: Snapshot, meta: Any) -> MetaUnfit | None:
    """Return why the graph at *tip* cannot have *meta*, the result of *branch*; None if it can."""
    problem = find_role_problem(tip, meta)
    if problem is None:
        return None
    hint = _AGAIN if branch.record.depth else _OTHERWISE
    if branch.record.status == "killed":
        hint = _ANEW
    elif branch.record.depth and "branches" in branch.get_head_node().payload:
        hint = _OTHERWISE
    return MetaUnfit(branch.record.thread, tip.record.thread, problem, hint)


def read_result(branch: Snapshot) -> Any:
    """Return the meta with which *branch* ends; None if it took no step."""
    return branch.get_head_node().payload.get("meta") if branch.record.depth else None


def find_unfit_end(store: Store, tip: Snapshot) -> MetaUnfit | None:
    """Return why the branch that plays a role of the graph at *tip*, and is at its end, cannot end.

    None if it can, or takes steps still, and where no role is played.
    """
    split = tip.get_present().split
    if split is None or get_workflow(tip, tip.get_present().workflow).flow is not None:
        return None
    head = find_head(store, split.children[0].thread)
    if head is None:
        return None
    branch = read_snapshot(store, head.commit)
    return find_unfit(tip, branch, read_result(branch)) if _is_at_its_end(branch) else None


def _is_at_its_end(branch: Snapshot) -> bool:
    if branch.record.status != "ready":
        return False
    present = branch.get_present()
    try:
        return decide_next(branch, present, get_workflow(branch, present.workflow)).role == END
    except UwfError:
        return False
