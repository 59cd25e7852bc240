import os
from pathlib import Path

import pytest
from commands.world import World
from refusing import refuses

from uwf_git.commands.lifecycle.fork import Forked, ForkRequest, fork_thread
from uwf_git.store.threads.heads import ThreadExists
from uwf_git.store.threads.history import walk_history


def fork(world: World, thread: str, at: str | None = None, **asked: str) -> Forked:
    request = ForkRequest(thread, at, **asked)
    return fork_thread(world.store, world.caller, request, thread=world.new_id())


def test_fork_goes_on_where_the_other_thread_is(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    before = world.snapshot(thread)

    forked = fork(world, thread)

    after = world.snapshot(forked.thread)
    assert after.record.event == "fork"
    assert after.record.forked_from == thread
    assert (after.record.node, after.record.depth) == (before.record.node, 1)
    assert after.commit.parents == (before.commit.oid,)
    assert after.commit.tree == before.commit.tree
    assert world.step(forked.thread).role == "checker"
    assert world.snapshot(thread).commit == before.commit


def test_fork_of_a_fork_tells_its_own_story_and_the_whole_one(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    once = fork(world, thread).thread
    world.step(once)
    twice = fork(world, once, "2").thread
    tip = world.snapshot(twice).commit.oid

    own = [each.record.event for each in walk_history(world.store, tip)]
    whole = walk_history(world.store, tip, through_forks=True)

    assert own == ["fork"]
    assert [each.record.event for each in whole] == ["fork", "step", "fork", "step", "start"]
    assert world.snapshot(fork(world, twice, "1").thread).record.depth == 1


def test_fork_that_cannot_be_made_leaves_nothing(world: World) -> None:
    thread = world.begun()
    request = ForkRequest(thread, workdir="nowhere")
    new = world.new_id()
    with refuses("not-a-directory"):
        fork_thread(world.store, world.caller, request, thread=new)
    with pytest.raises(ThreadExists):
        fork_thread(world.store, world.caller, ForkRequest(thread), thread=thread)
    assert world.store.refs.names("refs/threads/") == [thread]
    assert os.listdir(Path(world.store.path, "uwf-workdirs")) == [thread]
