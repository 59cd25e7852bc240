"""Whether the branches of a thread can be joined, and what they came to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uwf_git.commands.turn.role_result import find_unfit, find_unfit_end
from uwf_git.engine.flow_state import find_state_problem
from uwf_git.errors import Refused, StoreDamaged, UwfError
from uwf_git.store.store import Store
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

if TYPE_CHECKING:
    from uwf_git.commands.split.derived import Ending


def plan_join(tip: Snapshot, tips: Sequence[Snapshot]) -> "Ending":
    """Return what the branches that ended at *tips* came to, for the thread at *tip*.

    Raises:
        MergeConflict: they changed the same part of the state.
        Refused: the state would have more than 1 MiB.
        MetaUnfit: they play a role of a graph, which asks for another result.
        What ``plan_ending`` raises.
    """
    from uwf_git.commands.split.ending import plan_ending  # noqa: PLC0415 (few threads split)

    thread = tip.record.thread
    ending = plan_ending(tip, tips)
    problem = find_state_problem(ending.state)
    if problem is not None:
        raise Refused(
            f"the branches of {ending.label} cannot be joined: {problem}",
            code="state-too-large",
            hint=f"""`uwf thread patch {thread} '{{"KEY": null}}'` leaves out their KEY""",
            thread=thread,
        )
    unfit = find_unfit(tip, tips[0], ending.meta) if tips else None
    if unfit is not None:
        raise unfit
    return ending


def find_join_problem(store: Store, tip: Snapshot) -> UwfError | None:
    """Return why the branches of the thread at *tip* cannot end or be joined.

    None if they can, if one has not come to its end, and if the thread has not split.

    Raises:
        StoreDamaged: what they did cannot be read.
    """
    if tip.record.status != "split":
        return None
    from uwf_git.commands.split.family import list_branches  # noqa: PLC0415 (few threads split)

    branches = list_branches(store, tip)
    if not all(branch.has_ended for branch in branches):
        return find_unfit_end(store, tip)
    heads = [branch.head for branch in branches if branch.head is not None]
    try:
        plan_join(tip, [read_snapshot(store, head.commit) for head in heads])
    except StoreDamaged:
        raise
    except UwfError as problem:
        return problem
    return None
