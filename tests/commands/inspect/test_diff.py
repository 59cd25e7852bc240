from typing import Any

import pytest
from commands.world import World, says

from uwf_git.commands.control.steer import kill_thread
from uwf_git.commands.inspect.read import diff_threads
from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import NoSuchThread


def fork(world: World, thread: str, at: str) -> ThreadId:
    request = ForkRequest(thread, at)
    return fork_thread(world.store, world.caller, request, thread=world.new_id()).thread


def diffed(world: World, one: str, other: str) -> dict[str, Any]:
    return diff_threads(world.store, one, other)


@pytest.fixture
def both(world: World) -> tuple[ThreadId, ThreadId]:
    """Return a thread of three steps, and a fork at its first with other steps."""
    thread = world.begun()
    world.step(thread, says({"text": "a"}))
    world.step(thread, says({"ok": False, "why": ["x", "y"]}, "No.\nToo long.\n", state={"n": 1}))
    world.step(thread, says({"text": "b"}, "Shorter."))
    forked = fork(world, thread, "1")
    world.step(forked, says({"ok": True, "why": ["y"]}, "Yes.\nToo long.\n", state={"n": 2}))
    return thread, forked


def test_steps_of_one_role_stand_side_by_side(
    world: World, both: tuple[ThreadId, ThreadId]
) -> None:
    steps = diffed(world, *both)["steps"]

    assert [(step["in"], step["role"]) for step in steps] == [("both", "checker"), ("a", "writer")]
    assert steps[0]["meta"] == [
        {"kind": "changed", "path": "ok", "before": False, "after": True},
        {"kind": "removed", "path": "why[0]", "before": "x"},
    ]
    assert steps[0]["content"] == "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-No.\n+Yes.\n Too long.\n"
    assert [steps[0][side]["number"] for side in "ab"] == [2, 2]
    assert steps[1]["a"]["meta"] == {"text": "b"}
    assert (steps[1]["a"]["number"], steps[1]["a"]["content"]) == (3, "Shorter.")


def test_the_other_way_round_is_the_opposite(world: World, both: tuple[ThreadId, ThreadId]) -> None:
    steps = diffed(world, both[1], both[0])["steps"]

    assert [step["in"] for step in steps] == ["both", "b"]
    assert steps[0]["meta"][1] == {"kind": "added", "path": "why[0]", "after": "x"}


def test_archived_threads_are_compared_as_well(
    world: World, both: tuple[ThreadId, ThreadId]
) -> None:
    before = diffed(world, *both)
    for thread in both:
        kill_thread(world.store, world.caller, thread)

    after = diffed(world, *both)

    assert after["a"]["status"] == "killed"
    assert after["steps"] == before["steps"]
    assert after["common"] == before["common"]


def test_missing_thread_is_refused(world: World) -> None:
    thread = world.begun()
    with pytest.raises(NoSuchThread):
        diffed(world, thread, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
