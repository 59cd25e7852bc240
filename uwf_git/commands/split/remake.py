"""Make a derived commit again from the commits before it, to compare.

What a person, a clock or an expression said is in the commit's nodes; all else follows.
Format: FORMAT.md, "Branches".
"""

from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.commands.split.derived import (
    Derived,
    SplitPlan,
    draft_join,
    draft_split,
    draft_start,
)
from uwf_git.commands.split.ending import plan_ending, read_at
from uwf_git.commands.split.plan import Asked, SplitRefused, find_container, plan_split, read_asked
from uwf_git.model.event_rules import RULES
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED, ThreadState, TransitionRecord
from uwf_git.store.objects.commit import CommitView
from uwf_git.store.oid import Oid
from uwf_git.store.threads.snapshot import Snapshot


def is_derived(record: TransitionRecord, commit: CommitView) -> bool:
    """Check whether a commit claims to follow from those before it: no one is its author."""
    return RULES[record.event].is_derived or (record.event == "start" and bool(commit.parents))


class ReadSplit(NamedTuple):
    """A split as its commit has it, for the first commits of its branches."""

    split: Snapshot
    plan: SplitPlan
    numbers: Mapping[ThreadId, int]
    """The number of each branch."""

    present: ThreadState

    def draft_start(self, number: int) -> Derived:
        """Draft the first commit of branch *number*."""
        branch = self.plan.branches[number]
        return draft_start(self.split, number, branch, present=self.present)


def read_split(split: Snapshot) -> ReadSplit:
    """Read the commit of a split.

    Raises:
        SplitRefused: it is none.
        StoreDamaged: a commit or node that it needs cannot be read.
    """
    present = split.get_present()
    if present.split is None or split.record.event != "split":
        raise SplitRefused("a thread begins after a commit that is no split")
    numbers = {child.thread: number for number, child in enumerate(present.split.children)}
    plan = plan_again(split)
    if len(plan.branches) != len(present.split.children):
        raise SplitRefused(f"the split would have {len(plan.branches)} branches")
    return ReadSplit(split, plan, numbers, present)


class Remaking:
    """Makes derived commits again; of a split that many branches follow, the plan is made once."""

    def __init__(self) -> None:
        self._newest: tuple[Oid, ReadSplit] | None = None

    def remake(self, snapshot: Snapshot) -> Oid:
        """Return the id that the derived commit at *snapshot* must have.

        Raises:
            SplitRefused: there can be no such commit there.
            Refused: its branches cannot be joined so.
            StoreDamaged: a commit or node that it needs cannot be read.
        """
        parents = snapshot.commit.parents
        if not parents:
            raise SplitRefused("it follows no commit")
        first = read_at(snapshot.objects, parents[0])
        if snapshot.record.event == "join":
            return _remake_join(first, [read_at(first.objects, oid) for oid in parents[1:]]).oid
        if len(parents) > 1:
            raise SplitRefused("it has more than one parent")
        if snapshot.record.event == "split":
            return draft_split(first, plan_again(snapshot)).oid
        found = self._read_split(first)
        number = found.numbers.get(snapshot.record.thread)
        if number is None:
            raise SplitRefused(f"{snapshot.record.thread} is no branch of {first.record.thread}")
        return found.draft_start(number).oid

    def _read_split(self, split: Snapshot) -> ReadSplit:
        if self._newest is None or self._newest[0] != split.commit.oid:
            self._newest = (split.commit.oid, read_split(split))
        return self._newest[1]


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
    asked = read_asked(container, starts)
    if container.kind == "workflow" and "input" not in container.policy:
        asked = Asked(prompt=tip.get_start().payload["prompt"])
    return plan_split(tip, container, asked)


def _remake_join(tip: Snapshot, tips: list[Snapshot]) -> Derived:
    split = tip.get_present().split
    if split is None:
        raise SplitRefused("a join after a commit that has no branches")
    if [each.record.thread for each in tips] != [child.thread for child in split.children]:
        raise SplitRefused("a join of other branches than those of the split")
    for each, child in zip(tips, split.children, strict=True):
        thread, status = each.record.thread, each.record.status
        if status not in ENDED:
            raise SplitRefused(f"a join of branch {thread}, which is {status}")
        is_own = each.record.parent_thread == tip.record.thread
        if not is_own or each.get_start().hash != child.start:
            raise SplitRefused(f"{thread} did not begin as branch of {tip.record.thread}")
    return draft_join(tip, tips, plan_ending(tip, tips))
