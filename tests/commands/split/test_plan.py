"""What splits a thread, and into which branches."""

import pytest
from commands.world import World, replied
from ulid import ULID

from uwf_git.commands.split.commits import (
    Asked,
    SplitRefused,
    find_container,
    find_split,
    plan_again,
    plan_split,
)
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.thread import check_thread
from uwf_git.model.flow import MAX_ITEMS
from uwf_git.store.threads.heads import get_head

ITEMS = """\
name: items
description: One branch for each.
initialState: {files: [a, b]}
root:
  type: map
  over: state.files
  nodes:
    - {type: agent, agentId: reader}
"""

INNER = """\
name: inner
description: A part.
root: {type: agent, agentId: asker}
"""

USER = """\
name: user
description: A workflow is a part of it.
root:
  type: sequential
  nodes:
    - {type: agent, agentId: asker, output: question}
    - {type: workflow, name: whole, use: inner, input: "do ${state.question}", output: answer}
"""


def test_a_role_that_an_agent_plays_splits_nothing(world: World) -> None:
    with pytest.raises(SplitRefused, match="writer is no role that a workflow plays"):
        find_container(world.snapshot(world.begun()), "writer")


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


def test_branches_have_ids_of_the_date_at_which_they_began_in_their_order(world: World) -> None:
    thread = world.begun(ITEMS)
    world.step(thread)

    at = world.snapshot(thread)
    split = at.get_present().split
    assert split is not None
    first, second = (child.thread for child in split.children)
    assert first < second
    assert ULID.from_str(first).milliseconds == at.commit.time_s * 1000
    assert first[:10] == second[:10]


def test_a_workflow_that_is_a_part_is_one_branch_of_its_own(world: World) -> None:
    world.put(INNER)
    thread = world.begun(USER)

    def play(turn: Turn) -> Played:
        return replied({}, "it")

    world.step(thread, play)
    before = world.snapshot(thread)
    assert world.step(thread, play).said == "whole into 1"
    split = world.snapshot(thread).get_present().split
    assert split is not None
    (child,) = split.children
    start = world.snapshot(thread).get_node(child.start)
    begun = world.snapshot(begin_branch(world.store, world.snapshot(thread), 0))
    assert (start.payload["prompt"], start.payload["depth"]) == ("do it", 1)
    assert "entry" not in start.payload
    assert begun.record.workflow_name == "inner"
    container = find_container(before, split.at)
    assert container.used == begun.record.workflow
    (branch,) = plan_again(find_split(world.snapshot(thread))).branches
    assert (branch.prompt, branch.initial_state) == ("do it", None)

    for _step in range(10):
        if world.step(thread, play).status == "completed":
            break

    head = get_head(world.store, thread)
    assert world.snapshot(thread).get_present().state["answer"] == "it"
    assert list(check_thread(world.store, thread, head.commit, archived=head.archived)) == []
