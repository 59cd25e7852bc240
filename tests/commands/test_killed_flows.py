"""Splits, first commits of branches and joins killed at every moment: anybody's next steps finish.

Whoever makes them makes the same, so nothing of a killed engine has to be found or undone.
"""

from pathlib import Path

import pytest
from commands.flows import CHECKS, Split, plays
from commands.killed import kill_everywhere, make_folders, state_of
from commands.world import World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.step.step_thread import (
    StepRequest,
    join_branches,
    list_leaves,
    settle_branches,
    step_thread,
)
from uwf_git.commands.turn.turn import Player
from uwf_git.model.names import Oid, ThreadId

WORK = """\
echo "$UWF_ROLE" >>"$UWF_REPO/runs"
printf '{"meta": {"words": "some"}, "content": "What was said."}'
"""


def step(world: World, thread: ThreadId, play: Player = plays) -> object:
    """Take a step, one branch after the other."""
    return step_thread(world.store, world.caller, StepRequest(thread, play, jobs=1))


def tips_of(world: World, thread: ThreadId) -> tuple[Oid, ...]:
    return world.snapshot(thread).commit.parents


def finish(world: World, thread: ThreadId, play: Player = plays) -> None:
    for _ in range(20):
        if state_of(world, thread)[0] == "completed":
            return
        step(world, thread, play)
    raise AssertionError("it does not end")


def test_a_split_killed_anywhere_is_made_once_or_not_at_all(world: World) -> None:
    thread = world.stepped(plays, source=CHECKS)
    make_folders(world, lambda copy: step(copy, thread))
    made: set[Oid] = set()

    def again(copy: World) -> None:
        status, depth = state_of(copy, thread)
        assert (status, depth) in {("ready", 1), ("split", 1)}
        if status == "ready":
            step(copy, thread)
        made.add(copy.tip(thread))
        finish(copy, thread)

    assert kill_everywhere(world, lambda copy: step(copy, thread), again) > 10
    assert len(made) == 1


def test_branches_killed_anywhere_begin_once_and_take_each_step_once(world: World) -> None:
    thread = world.stepped(plays, source=CHECKS, times=2)
    make_folders(world, lambda copy: step(copy, thread))
    children = Split(world, thread).children

    def again(copy: World) -> None:
        finish(copy, thread)
        assert state_of(copy, thread) == ("completed", 3)
        assert [state_of(copy, child) for child in children] == [("completed", 1)] * 2

    assert kill_everywhere(world, lambda copy: step(copy, thread), again) > 40


def test_a_join_killed_anywhere_is_made_once_or_not_at_all(world: World, split: Split) -> None:
    split.finish_branches()
    thread = split.thread
    make_folders(world, lambda copy: step(copy, thread))
    made: set[tuple[Oid, ...]] = set()

    def again(copy: World) -> None:
        status, depth = state_of(copy, thread)
        assert (status, depth) in {("split", 1), ("ready", 2)}
        if status == "split":
            step(copy, thread)
        made.add((copy.tip(thread), *tips_of(copy, thread)))
        finish(copy, thread)

    assert kill_everywhere(world, lambda copy: step(copy, thread), again) > 10
    assert len(made) == 1


def test_branches_killed_anywhere_have_each_agent_run_once(world: World) -> None:
    agent = world.program(WORK)
    thread = world.begun(CHECKS, agent)
    play = agent_player(lambda _log: None)
    step(world, thread, play)
    step(world, thread, play)
    # How long agents took is in their nodes, and so in which folder these lie.
    for number in range(256):
        Path(world.store.path, "objects", f"{number:02x}").mkdir(exist_ok=True)

    def again(copy: World) -> None:
        finish(copy, thread, play)
        runs = Path(copy.store.path, "runs").read_text().split()
        assert sorted(runs) == ["closer", "coder", "reviewer", "tester"]

    assert kill_everywhere(world, lambda copy: step(copy, thread, play), again, spare=6) > 80


NESTED = """\
name: nested
description: Branches in a loop in an item.
initialState: {items: [1]}
root:
  type: map
  over: state.items
  nodes:
    - type: loop
      maxIterations: 2
      nodes:
        - type: parallel
          nodes: [{type: agent, agentId: coder}, {type: agent, agentId: reviewer}]
"""


@pytest.mark.parametrize("before", [3, 4, 7])
def test_branches_in_a_loop_in_an_item_killed_anywhere(world: World, before: int) -> None:
    """Where its branches are joined, where it splits again, and where it ends and is joined."""
    thread = world.begun(NESTED)
    for _ in range(before):
        step(world, thread)
    make_folders(world, lambda copy: step(copy, thread))
    (item,) = Split(world, thread).children

    def again(copy: World) -> None:
        finish(copy, thread)
        assert state_of(copy, item) == ("completed", 2)
        assert copy.snapshot(item).get_present().visits == {"coder": 2, "reviewer": 2}

    assert kill_everywhere(world, lambda copy: step(copy, thread), again) > 10


RACE = """\
name: race
description: The first counts, and the other one is split.
root:
  type: parallel
  join: any
  nodes:
    - {type: agent, agentId: coder}
    - {type: parallel, nodes: [{type: agent, agentId: reviewer}, {type: agent, agentId: tester}]}
"""


def test_losers_killed_anywhere_are_ended_with_all_below(world: World) -> None:
    thread = world.begun(RACE)
    for _ in range(2):
        step(world, thread)
    winner, loser = Split(world, thread).children
    list(list_leaves(world.store, world.snapshot(thread)))
    children = Split(world, loser).children
    finish(world, winner)

    def settle(copy: World) -> None:
        settle_branches(copy.store, copy.caller, thread)
        join_branches(copy.store, copy.caller, thread)

    def again(copy: World) -> None:
        settle(copy)
        assert [state_of(copy, each)[0] for each in (loser, *children)] == ["killed"] * 3
        assert state_of(copy, thread)[0] == "ready"

    make_folders(world, settle)
    assert kill_everywhere(world, settle, again) > 40
