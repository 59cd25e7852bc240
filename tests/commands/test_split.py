"""What branches come to, what splits a thread, and derived commits that are made again."""

import itertools
import json

import pytest
from commands.flows import CountingObjects, copy_commit, plays, put, split_checks, split_files, tell
from commands.step.test_record_turn import LOOP
from commands.world import World, replied, says
from refusing import refuses

from uwf_git.commands.split import (
    Asked,
    Ending,
    Remaking,
    SplitRefused,
    draft_split,
    find_container,
    find_node,
    find_split,
    is_derived,
    plan_ending,
    plan_split,
    read_split,
)
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.engine.events import Node
from uwf_git.model.flow import MAX_ITEMS
from uwf_git.model.names import Oid
from uwf_git.store.objects.strict import RecentObjects
from uwf_git.store.threads.history import Snapshot, read_snapshot, walk_history

# What branches that ended come to, whoever drove them.


BOTH = """\
name: both
root:
  type: parallel
  name: both
  nodes:
    - {type: agent, agentId: one, output: first}
    - {type: agent, agentId: two, output: second}
"""


def play(turn: Turn) -> Played:
    return replied({}, f"said by {turn.role}\nand more")


def agree(_turn: Turn) -> Played:
    return replied({"key": "same"})


def differ(turn: Turn) -> Played:
    return replied({"key": turn.role})


class Ended:
    """A thread that split into two, and its branches at their ends; a player of None is a kill."""

    def __init__(self, world: World, *players: Player | None, source: str = BOTH) -> None:
        thread = world.begun(source)
        assert world.step(thread, play).status == "split"
        self.tip = world.snapshot(thread)
        split = self.tip.get_present().split
        assert split is not None
        self.tips: list[Snapshot] = []
        branches = [begin_branch(world.store, self.tip, n) for n in range(len(split.children))]
        for branch, player in zip(branches, players, strict=True):
            if player is None:
                world.kill(branch, reason="no time\nat all")
            else:
                statuses = [world.step(branch, player).status for _step in range(2)]
                assert statuses == ["ready", "completed"]
            self.tips.append(world.snapshot(branch))

    def plan(self) -> Ending:
        return plan_ending(self.tip, self.tips)


def test_a_killed_workflow_leaves_its_error_where_errors_are_a_list(world: World) -> None:
    world.put("name: inner\nroot: {type: agent, agentId: one}\n")
    source = "name: outer\ninitialState: {errors: %s}\nroot: {type: workflow, use: inner}\n"

    assert Ended(world, None, source=source % "[old]").plan().state == {
        "errors": ["old", "no time"]
    }
    ended = Ended(world, None, source=source % "text")
    with refuses("merge-conflict", match='errors: "text", which is no list') as caught:
        ended.plan()
    assert """{"errors": null}""" in (caught.value.hint or "")


def test_branches_that_disagree_cannot_be_joined(world: World) -> None:
    assert Ended(world, agree, agree).plan().state["key"] == "same"
    with refuses("merge-conflict", match="the branches of both disagree about key"):
        Ended(world, differ, differ).plan()


def test_branches_whose_joined_state_nobody_could_read_are_not_joined(world: World) -> None:
    ended = Ended(world, says(json.loads("[" * 499 + "]" * 499)), agree)

    with refuses("state-too-deep", match="the branches of both cannot be joined: .* 500 levels"):
        ended.plan()


# What splits a thread, and into which branches.


ITEMS = """\
name: items
initialState: {files: [a, b]}
root:
  type: map
  over: state.files
  nodes:
    - {type: agent, agentId: reader}
"""


@pytest.mark.parametrize("at", ["9", "0/0", "", "0/", "x"])
def test_a_place_that_splits_nothing_is_refused(at: str, world: World) -> None:
    with pytest.raises(SplitRefused, match="no place at which the flow splits"):
        find_container(world.snapshot(world.begun(ITEMS)), at)


def test_a_map_has_up_to_a_thousand_branches(world: World) -> None:
    tip = world.snapshot(world.begun(ITEMS))
    container = find_container(tip, "0")

    plan = plan_split(tip, container, Asked([0] * 1000))

    assert MAX_ITEMS == 1000
    assert [each.entry for each in plan.branches[:2]] == ["0.0", "0.1"]
    assert plan.branches[999].initial_state == {"item": 0, "itemIndex": 999}
    with pytest.raises(SplitRefused, match="map would have more than 1,000 branches"):
        plan_split(tip, container, Asked([0] * 1001))


# Nodes of a flow as those who watch know them.


def test_node_has_its_label_its_name_and_its_pass(world: World) -> None:
    thread = world.begun(LOOP.replace("agentId: coder", "agentId: coder, id: write, name: Writes"))
    snapshot = world.snapshot(thread)

    assert find_node(snapshot, "0.3/0") == Node("write", "Writes", 3)
    assert find_node(snapshot, "0.1/1") == Node("reviewer", "reviewer", 1)
    assert find_node(snapshot, "0") == Node("loop", "loop", 1)


# Derived commits made again: from the commits before them, and from nothing else.

INNER = """\
name: inner
initialState: {from: inner}
root: {type: agent, agentId: worker}
"""

OUTER = """\
name: outer
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
        assert remaking.remake(snapshot).oid == snapshot.commit.oid
        costs.append(counting.count)

    assert max([after - before for before, after in itertools.pairwise(costs)]) < costs[0] / 5


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
        commit = join.commit._replace(parents=(trunk, *tips))
        return Remaking().remake(join._replace(commit=commit)).oid

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
