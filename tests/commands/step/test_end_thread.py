import os

import pytest
from commands.world import World, fails

from uwf_git.commands.step.end_thread import end_thread
from uwf_git.commands.step.step_thread import TurnFailed
from uwf_git.commands.turn.active_thread import read_active
from uwf_git.store.threads.heads import HeadMoved, get_head, list_threads


def left_behind(world: World, thread: str) -> list[str]:
    """List the local files of a thread."""
    return [
        os.path.join(folder, name)
        for folder, folders, files in os.walk(world.store.path)
        for name in (*folders, *files)
        if thread in name and "refs" not in folder
    ]


def test_end_moves_the_thread_to_the_archive_and_adds_no_node(world: World) -> None:
    thread = world.begun()
    seen = read_active(world.store, thread)

    ended = end_thread(world.store, world.caller, seen, event="end")

    record = world.snapshot(thread).record
    assert (ended.status, ended.head) == ("completed", record.node)
    assert get_head(world.store, thread).archived
    assert list_threads(world.store, archived=False) == []
    assert (record.event, record.status, record.node) == ("end", "completed", seen[1].record.node)
    assert world.snapshot(thread).subject == "end: completed after 0 steps"


def test_end_counts_one_step_as_one(world: World) -> None:
    thread = world.begun()
    world.step(thread)

    end_thread(
        world.store, world.caller, read_active(world.store, thread), event="kill", body="why"
    )

    snapshot = world.snapshot(thread)
    assert (snapshot.subject, snapshot.body) == ("kill: killed after 1 step", "why")
    assert (snapshot.record.role, snapshot.record.agent, snapshot.record.attempt) == (None,) * 3


def test_end_of_a_thread_leaves_nothing_on_this_machine(world: World) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails())
    os.makedirs(world.store.local_path("run", thread, "0" * 40))
    assert left_behind(world, thread)

    end_thread(world.store, world.caller, read_active(world.store, thread), event="end")

    assert left_behind(world, thread) == []


def test_end_of_what_has_moved_on_changes_nothing(world: World) -> None:
    thread = world.begun()
    seen = read_active(world.store, thread)
    world.step(thread)

    with pytest.raises(HeadMoved):
        end_thread(world.store, world.caller, seen, event="end")

    assert world.snapshot(thread).record.depth == 1
