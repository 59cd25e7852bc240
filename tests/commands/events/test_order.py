import pytest
from commands.world import World

from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.events.journal import (
    NoSuchEvent,
    OrderedTransition,
    find_thread,
    find_turn_end,
    list_new,
    merge_transitions,
)
from uwf_git.engine.events import EventId
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid

A, B = ThreadId("01J00000000000000000000001"), ThreadId("01J00000000000000000000002")


def tip(world: World, thread: ThreadId) -> Oid:
    return world.snapshot(thread).commit.oid


def test_new_transitions_are_those_not_behind_the_known_one(world: World) -> None:
    thread = world.begun()
    commits = [tip(world, thread)]
    for _ in range(2):
        world.step(thread)
        commits.append(tip(world, thread))

    def new(known: Oid | None) -> list[Oid]:
        return [each.commit for each in list_new(world.store, thread, commits[-1], known=known)]

    assert new(None) == commits
    assert new(commits[0]) == commits[1:]
    assert new(commits[-1]) == []
    # The thread was moved back.
    assert list_new(world.store, thread, commits[0], known=commits[-1]) == []


def test_thread_that_went_another_way_has_only_that_way_new(world: World) -> None:
    thread = world.begun()
    start = tip(world, thread)
    world.step(thread)
    here = tip(world, thread)
    world.store.refs.advance(f"refs/threads/{thread}", seen=here, to=start)
    patch_thread(world.store, world.caller, thread, {"a": 1})
    there = tip(world, thread)

    assert [each.commit for each in list_new(world.store, thread, there, known=here)] == [there]
    lost = Oid("0" * 40)
    assert [each.commit for each in list_new(world.store, thread, there, known=lost)] == [
        start,
        there,
    ]


def test_threads_are_merged_by_time_and_each_keeps_its_own_order() -> None:
    def seen(time_s: int, thread: ThreadId, oid: str) -> OrderedTransition:
        return OrderedTransition(time_s, thread, Oid(oid))

    first = [seen(1, B, "b1"), seen(5, B, "b2"), seen(5, B, "b0")]
    second = [seen(5, A, "a1"), seen(9, A, "a0")]

    assert [each.commit for each in merge_transitions([first, second])] == [
        "b1",
        "a1",
        "b2",
        "b0",
        "a0",
    ]


def test_turn_ends_where_it_is_recorded(world: World) -> None:
    thread = world.begun()
    base = tip(world, thread)
    heads = {thread: base}
    assert find_turn_end(world.store, base, heads) is None
    patch_thread(world.store, world.caller, thread, {"a": 1})
    patched = tip(world, thread)
    world.step(thread)
    heads = {thread: tip(world, thread)}

    assert find_turn_end(world.store, base, heads) == EventId(heads[thread], "enter")
    # No turn began there: the next one had begun before.
    assert find_turn_end(world.store, patched, heads) is None


def test_commit_of_no_thread_is_no_event(world: World) -> None:
    workflow = world.put()
    other = world.store.refs.find(f"refs/workflows/{workflow.name}")
    assert other is not None

    for commit in (other, Oid("0" * 40)):
        with pytest.raises(NoSuchEvent, match="there is no event"):
            find_thread(world.store, EventId(commit))
    thread = world.start()
    with pytest.raises(NoSuchEvent, match="-enter in this store"):
        find_turn_end(world.store, tip(world, thread), {})
