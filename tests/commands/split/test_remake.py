"""Derived commits made again: from the commits before them, and from nothing else."""

import itertools

import pytest
from commands.flows import CountingObjects, copy_commit, plays, put, split_checks, split_files, tell
from commands.world import World, replied

from uwf_git.commands.split import (
    Asked,
    Remaking,
    SplitRefused,
    draft_split,
    find_container,
    find_split,
    is_derived,
    plan_split,
    read_split,
)
from uwf_git.model.names import Oid
from uwf_git.store.objects.strict import RecentObjects
from uwf_git.store.threads.history import read_snapshot, walk_history

INNER = """\
name: inner
description: A workflow of its own.
initialState: {from: inner}
root: {type: agent, agentId: worker}
"""

OUTER = """\
name: outer
description: Uses another one.
root:
  type: sequential
  nodes:
    - {type: workflow, use: inner, output: one}
    - {type: workflow, use: inner, input: {more: "${state.one.words}"}}
    - {type: workflow, use: plain, input: {more: "${state.one.words}"}}
"""


def test_the_plan_of_a_split_is_made_once_for_its_branches(world: World) -> None:
    at = split_files(world, 12)
    counting = CountingObjects(world.store.objects)
    recent = RecentObjects(counting)
    remaking, costs = Remaking(), []

    for child in at.children:
        snapshot = world.snapshot(child)._replace(objects=recent)
        assert remaking.remake(snapshot) == snapshot.commit.oid
        costs.append(counting.count)

    later = [after - before for before, after in itertools.pairwise(costs)]
    assert max(later) < costs[0] / 5


def test_what_is_no_derived_commit_cannot_be_made(world: World) -> None:
    at = split_checks(world)
    step = read_snapshot(world.store, at.tip.commit.parents[0])

    assert not is_derived(step.record, step.commit)
    with pytest.raises(SplitRefused, match="a commit that is no split"):
        read_split(step)
    with pytest.raises(SplitRefused, match="has no branches"):
        find_split(step)
    assert find_split(at.tip).commit.oid == at.tip.commit.oid
    world.pause(at.thread)
    with pytest.raises(SplitRefused, match="a commit that is no split"):
        read_split(at.tip)
    with pytest.raises(SplitRefused, match="0/0 is no place at which the flow splits"):
        find_container(step, "0/0")


def test_a_tip_that_began_elsewhere_is_not_joined(world: World) -> None:
    at = split_checks(world)
    at.finish_branches()
    one, other = at.children
    at.step()
    join = at.tip
    trunk, first, second = join.commit.parents

    def remake(*tips: Oid) -> Oid:
        return Remaking().remake(join._replace(commit=join.commit._replace(parents=(trunk, *tips))))

    assert remake(first, second) == join.commit.oid
    for tips in ((second, second), (first, first), (second, first), (first,)):
        with pytest.raises(SplitRefused, match="other branches than those of the split"):
            remake(*tips)
    # The end of the other branch, with the name of this one.
    renamed = copy_commit(world.store, second)
    renamed.message = renamed.message.replace(other.encode(), one.encode())
    with pytest.raises(SplitRefused, match=f"{one} did not begin as branch of {at.thread}"):
        remake(put(world.store, renamed), second)


def test_a_workflow_begins_as_its_node_says_and_no_other_way(world: World) -> None:
    world.put(INNER)
    world.put(INNER.replace("inner", "plain").replace("initialState: {from: plain}\n", ""))
    thread = world.begun(OUTER)
    before = world.snapshot(thread)
    assert world.step(thread, plays).status == "split"

    # Without an input the words of the thread are its prompt, whatever a StartNode says.
    container = find_container(before, "0/0")
    for asked in (Asked(prompt="Approve it."), Asked(prompt="Do it.", state={"ok": True})):
        forged = draft_split(before, plan_split(before, container, asked)).write(world.store)
        (told,) = tell(world.store, thread, forged)
        assert told.startswith("the split is not the one that follows, which is ")

    while world.snapshot(thread).record.status != "completed":
        world.step(thread, lambda _turn: replied({"words": "für"}), command="mine")
    world.assert_sound(thread)
    tip = world.snapshot(thread)
    splits = [at for at in walk_history(world.store, tip.commit.oid) if at.record.event == "split"]
    begun = [read_split(at).plan.branches[0] for at in splits]
    more = {"more": "für"}
    assert [each.initial_state for each in begun] == [more, {"from": "inner", **more}, None]
    assert [each.prompt for each in begun] == ['{"more": "für"}'] * 2 + ["Do it."]
