"""Make a derived commit again from the commits before it, to compare.

What a person, a clock or an expression said is in the commit's nodes; all else follows.
Format: FORMAT.md, "Branches".
"""

from uwf_git.commands.split.derived import (
    Derived,
    SplitPlan,
    draft_join,
    draft_split,
    draft_start,
)
from uwf_git.commands.split.ending import plan_ending, read_at
from uwf_git.commands.split.plan import SplitRefused, find_container, plan_split, read_asked
from uwf_git.model.event_rules import RULES
from uwf_git.model.thread import ENDED
from uwf_git.store.oid import Oid
from uwf_git.store.threads.snapshot import Snapshot


def is_derived(snapshot: Snapshot) -> bool:
    """Check whether the commit claims to follow from those before it: no one is its author."""
    record = snapshot.record
    return RULES[record.event].is_derived or (
        record.event == "start" and bool(snapshot.commit.parents)
    )


def remake(snapshot: Snapshot) -> Oid:
    """Return the id that the derived commit at *snapshot* must have.

    Raises:
        SplitRefused: there can be no such commit there.
        StoreDamaged: a commit or node that it needs cannot be read.
    """
    first, *rest = [read_at(snapshot.objects, oid) for oid in snapshot.commit.parents]
    if snapshot.record.event == "join":
        return _remake_join(first, rest).oid
    if rest:
        raise SplitRefused("it has more than one parent")
    if snapshot.record.event == "split":
        return draft_split(first, plan_again(snapshot)).oid
    return _remake_start(first, snapshot).oid


def plan_again(split: Snapshot) -> SplitPlan:
    """Return the plan of a thread that has *split*, from its commit.

    Raises:
        SplitRefused: there can be no such split.
        StoreDamaged: a commit or node that it needs cannot be read.
    """
    tip = read_at(split.objects, split.commit.parents[0])
    container = find_container(tip, split.record.at or "")
    present = split.get_present()
    children = () if present.split is None else present.split.children
    starts = [split.get_node(child.start) for child in children]
    return plan_split(tip, container, read_asked(container, starts))


def _remake_start(split: Snapshot, made: Snapshot) -> Derived:
    found = split.get_present().split
    if found is None or split.record.event != "split":
        raise SplitRefused("a thread begins after a commit that is no split")
    numbers = [n for n, child in enumerate(found.children) if child.thread == made.record.thread]
    if not numbers:
        raise SplitRefused(f"{made.record.thread} is no branch of {split.record.thread}")
    return draft_start(split, numbers[0], plan_again(split).branches[numbers[0]])


def _remake_join(tip: Snapshot, tips: list[Snapshot]) -> Derived:
    split = tip.get_present().split
    if split is None:
        raise SplitRefused("a join after a commit that has no branches")
    if [each.record.thread for each in tips] != [child.thread for child in split.children]:
        raise SplitRefused("a join of other branches than those of the split")
    for each in tips:
        if each.record.status not in ENDED:
            thread, status = each.record.thread, each.record.status
            raise SplitRefused(f"a join of branch {thread}, which is {status}")
    return draft_join(tip, tips, plan_ending(tip, tips))
