import pytest
from commands.world import World, says
from refusing import refuses

from uwf_git.commands.inspect.read import find_shared_commit, part_chains
from uwf_git.model.names import Oid, ThreadId


@pytest.fixture
def thread(world: World) -> ThreadId:
    """Return a thread of three steps."""
    thread = world.begun()
    for meta in ({"text": "a"}, {"ok": False}, {"text": "b"}):
        world.step(thread, says(meta))
    return thread


def fork(world: World, thread: str, at: str | None = None) -> ThreadId:
    return world.fork(thread, at)


def parted(world: World, one: ThreadId, other: ThreadId) -> tuple[list[str], list[str], int]:
    """Return the roles of the steps that only each has, and the number of common steps."""
    found = part_chains(world.snapshot(one), world.snapshot(other))
    roles = [[node.payload["role"] for node in side] for side in (found.one, found.other)]
    return roles[0], roles[1], found.depth


def shared(world: World, one: ThreadId, other: ThreadId) -> Oid | None:
    tips = [world.tip(thread) for thread in (one, other)]
    found = find_shared_commit(world.store.objects, tips[0], tips[1])
    assert found == find_shared_commit(world.store.objects, tips[1], tips[0])
    return found


def test_fork_and_its_origin_meet_where_it_was_forked(world: World, thread: ThreadId) -> None:
    forked = fork(world, thread, "1")
    point = world.snapshot(forked).commit.parents[0]
    world.step(forked)

    assert parted(world, thread, forked) == (["checker", "writer"], ["checker"], 1)
    assert parted(world, forked, thread) == (["checker"], ["checker", "writer"], 1)
    assert shared(world, thread, forked) == point


def test_step_that_was_taken_again_is_no_common_one(world: World, thread: ThreadId) -> None:
    forked = fork(world, thread)
    point = world.tip(thread)
    world.poke(forked)
    world.step(forked, says({"text": "better"}))

    assert parted(world, thread, forked) == (["writer"], ["writer"], 2)
    assert shared(world, thread, forked) == point


def test_commit_that_is_missing_is_damage(world: World, thread: ThreadId) -> None:
    with refuses("damaged-commit"):
        find_shared_commit(world.store.objects, world.tip(thread), Oid("0123456789" * 4))
