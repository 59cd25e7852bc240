from collections.abc import Callable

import pytest
from commands.world import World

from uwf_git.commands.verify.arrivals import Arrival, pass_arrivals
from uwf_git.commands.verify.thread import check_thread
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.oid import Oid


@pytest.fixture
def arrivals(world: World) -> list[Arrival]:
    """Return threads with a step each, of which one is known at its start."""
    world.put()
    found = []
    for number in range(4):
        thread = world.start()
        start = world.snapshot(thread).commit.oid
        world.step(thread)
        tip = world.snapshot(thread).commit.oid
        found.append(Arrival(thread, start if number else None, tip, archived=False))
    return found


def test_threads_that_are_right_pass_together(world: World, arrivals: list[Arrival]) -> None:
    assert pass_arrivals(world.store, arrivals) == set(arrivals)
    assert pass_arrivals(world.store, []) == set()


def test_nothing_passes_with_one_that_is_wrong(
    world: World, arrivals: list[Arrival], thread_ids: Callable[[], ThreadId]
) -> None:
    other = Arrival(thread_ids(), None, arrivals[0].tip, archived=False)
    ended = arrivals[1]._replace(archived=True)
    unknown = arrivals[2]._replace(tip=Oid("0" * 40))
    for wrong in (other, ended, unknown):
        assert pass_arrivals(world.store, [*arrivals, wrong]) == set()
        alone = check_thread(
            world.store, wrong.thread, wrong.tip, archived=wrong.archived, known=wrong.known
        )
        assert list(alone)


def test_batches_do_not_spoil_each_other(world: World, arrivals: list[Arrival]) -> None:
    wrong = arrivals[0]._replace(archived=True)
    passed = pass_arrivals(world.store, [*[arrivals[1]] * 100, wrong])
    assert passed == {arrivals[1]}


def test_arrival_says_which_ref_it_is_to_have(arrivals: list[Arrival]) -> None:
    active = arrivals[0]

    assert active.ref == f"refs/threads/{active.thread}"
    assert active._replace(archived=True).ref == f"refs/archive/{active.thread}"
