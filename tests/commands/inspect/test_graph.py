"""What the picture of a thread says of it, in each of its states."""

import pytest
from commands.world import World, fails, says

from uwf_git.commands.control.steer import kill_thread, pause_thread
from uwf_git.commands.inspect.graph import picture_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.engine.picture.draw import make_plan
from uwf_git.engine.picture.plan import FlowPlan

FLOW = """\
name: work
roles: {}
root:
  type: sequential
  nodes:
    - type: loop
      condition: state.ok !== true
      maxIterations: 3
      nodes:
        - {type: agent, agentId: writer}
    - type: parallel
      nodes:
        - {type: agent, agentId: left}
        - {type: agent, agentId: right}
"""


def badges(world: World, thread: str) -> dict[str, str]:
    """Return the badges by place."""
    subject = picture_thread(world.store, thread)
    assert subject.thread is not None
    return {place: mark.badge for place, mark in subject.thread.marks.items()}


def test_what_failed_is_told(world: World) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails())
    assert badges(world, thread)["writer"] in {"▶ try 2", "✗ 1 try"}


def test_paused_killed_and_completed_threads_say_so(world: World) -> None:
    thread = world.begun()
    pause_thread(world.store, world.caller, thread, reason="")
    assert badges(world, thread) == {"writer": "‖ paused"}
    kill_thread(world.store, world.caller, thread, reason="")
    assert badges(world, thread) == {"$START": "✗ killed"}
    other = world.start()
    world.step(other, says({"text": "x"}))
    world.step(other, says({"ok": True}))
    assert badges(world, other) == {"writer": "✓ 1", "checker": "✓ 1", "$END": "▶ next"}
    world.step(other)
    assert badges(world, other) == {"writer": "✓ 1", "checker": "✓ 1", "$END": "✓ completed"}


def test_a_flow_says_in_which_pass_its_thread_is(world: World) -> None:
    thread = world.begun(FLOW)
    assert badges(world, thread) == {"0/0": "▶ pass 1", "0/0/0": "▶ next"}
    world.step(thread, says({"ok": False}))
    assert badges(world, thread) == {"0/0": "▶ pass 2", "0/0/0": "▶ next · ✓ 1"}
    world.step(thread, says({"ok": True}))
    assert badges(world, thread) == {"0/0/0": "✓ 2", "0/1": "▶ next"}


def test_branches_stand_in_the_picture_of_their_thread(world: World) -> None:
    thread = world.begun(FLOW)
    world.step(thread, says({"ok": True}))
    world.step(thread, says({}))
    before = badges(world, thread)
    world.step(thread, says({"said": 1}))
    split = world.snapshot(thread).get_present().split
    assert split is not None
    left = split.children[0].thread

    assert before == {"0/0/0": "✓ 1", "0/1": "▶ 0 of 2 ended"}
    shown = badges(world, thread)
    assert {place: shown[place] for place in ("0/0/0", "0/1")} == before
    assert (shown["0/1/0"], shown["0/1/1"]) == ("✓ 1", "✓ 1")
    assert set(badges(world, left)) == {"0/1/0"}


def test_a_branch_that_was_given_up_is_marked_with_its_error(world: World) -> None:
    thread = world.begun(FLOW.replace("type: parallel", "type: parallel\n      onError: continue"))
    world.step(thread, says({"ok": True}))
    world.step(thread, says({}))
    split = world.snapshot(thread).get_present().split
    assert split is not None
    left, right = (child.thread for child in split.children)
    kill_thread(world.store, world.caller, left, reason="no paper")
    world.step(right, says({"said": 1}))
    world.step(thread, says({}))
    assert world.snapshot(thread).record.event == "join"
    subject = picture_thread(world.store, thread)
    assert subject.thread is not None
    mark = subject.thread.marks["0/1/0"]
    assert (mark.badge, mark.words) == ("✗ given up", "was given up: no paper")
    assert subject.thread.marks["0/1/1"].badge == "✓ 1"


def test_many_branches_of_a_player_are_one_box_with_counts_by_status(world: World) -> None:
    nodes = "\n".join(f"    - {{type: agent, agentId: left, id: left-{n}}}" for n in range(13))
    source = f"name: many\nroles: {{}}\nroot:\n  type: parallel\n  nodes:\n{nodes}\n"
    thread = world.begun(source)
    world.step(thread, says({}))
    split = world.snapshot(thread).get_present().split
    assert split is not None
    with pytest.raises(TurnFailed):
        world.step(split.children[3].thread, fails())
    world.step(split.children[5].thread, says({}))

    subject = picture_thread(world.store, thread)
    folded, whole = (make_plan(subject, is_whole=is_whole) for is_whole in (False, True))
    assert isinstance(folded, FlowPlan)
    assert isinstance(whole, FlowPlan)
    assert folded.title.endswith(f"thread {thread}, failed, 1 step")
    [branch] = folded.blocks[0].branches
    box = branch.blocks[0]
    assert (box.name, box.note) == ("13 \N{MULTIPLICATION SIGN} left", "left-0 … left-12")
    assert box.mark is not None
    assert box.mark.badge == "✗ 1 · ✓ 1"
    assert [each.blocks[0].name for each in whole.blocks[0].branches][-1] == "left-12"
