from typing import Any

import pytest
from commands.turns import begin_turn
from commands.world import World

from uwf_git.commands.event_order import NoSuchEvent
from uwf_git.commands.event_thread import ThreadEvents
from uwf_git.commands.thread_events import Telling
from uwf_git.commands.thread_pause import pause_thread
from uwf_git.commands.thread_resume import resume_thread
from uwf_git.engine.events import EventId, parse_event_id
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import NoSuchThread


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun()


def follow(world: World, thread: ThreadId, **asked: Any) -> ThreadEvents:
    return ThreadEvents(world.store, thread, Telling(), **asked)


def ids(events: ThreadEvents) -> list[str]:
    return [event["id"] for event in events.read()]


def words(events: ThreadEvents) -> list[str]:
    return [each.rpartition("-")[2] for each in ids(events)]


STEP = ["enter", "exit", "progress"]


def test_all_there_is_and_then_what_comes(world: World, thread: ThreadId) -> None:
    world.step(thread)
    events = follow(world, thread)

    assert words(events) == ["start", *STEP]
    assert words(events) == []
    world.step(thread)
    assert words(events) == STEP
    assert not events.is_over
    world.step(thread)
    assert words(events) == ["complete"]
    assert events.is_over


def test_what_comes_after_each_event_is_the_rest(world: World, thread: ThreadId) -> None:
    while world.step(thread).status != "completed":
        pass
    everything = ids(follow(world, thread))

    for place, event in enumerate(everything):
        since = parse_event_id(event)
        assert ids(follow(world, thread, since=since)) == everything[place + 1 :]


def test_commit_alone_is_all_of_its_events(world: World, thread: ThreadId) -> None:
    world.step(thread)
    since = EventId(world.snapshot(thread).commit.oid)
    world.step(thread)

    assert words(follow(world, thread, since=since)) == STEP


def test_turn_is_told_while_it_is_played_and_not_again(world: World, thread: ThreadId) -> None:
    events = follow(world, thread)
    assert words(events) == ["start"]
    base = begin_turn(world, thread)

    assert ids(events) == [f"{base}-enter"]
    assert ids(events) == []
    pause_thread(world.store, world.caller, thread)
    assert words(events) == ["progress"]
    resume_thread(world.store, world.caller, thread)
    world.step(thread)
    assert words(events) == ["progress", "exit", "progress"]


def test_who_saw_a_turn_begin_misses_nothing_after_it(world: World, thread: ThreadId) -> None:
    base = begin_turn(world, thread)
    pause_thread(world.store, world.caller, thread)
    resume_thread(world.store, world.caller, thread)
    world.step(thread)

    told = words(follow(world, thread, since=EventId(base, "enter")))

    assert told == ["progress", "progress", "exit", "progress"]


def test_turn_that_ends_between_the_looks_is_told_in_order(world: World, thread: ThreadId) -> None:
    events = follow(world, thread)
    list(events.read())
    world.step(thread)
    begin_turn(world, thread, role="checker")

    assert words(events) == [*STEP, "enter"]


def test_from_now_on_begins_with_who_is_at_work(world: World, thread: ThreadId) -> None:
    world.step(thread)
    assert words(follow(world, thread, from_now=True)) == []
    base = begin_turn(world, thread, role="checker")

    assert ids(follow(world, thread, from_now=True)) == [f"{base}-enter"]


def test_event_of_another_thread_is_no_place_in_this_one(world: World, thread: ThreadId) -> None:
    other = world.snapshot(world.start()).commit.oid

    for event in (EventId(other), EventId(other, "start"), EventId(other, "enter")):
        with pytest.raises(NoSuchEvent, match=f"in thread {thread}"):
            ids(follow(world, thread, since=event))
    mine = world.snapshot(thread).commit.oid
    with pytest.raises(NoSuchEvent, match=f"{mine}-exit"):
        ids(follow(world, thread, since=EventId(mine, "exit")))


def test_thread_that_is_removed_ends_it(world: World, thread: ThreadId) -> None:
    events = follow(world, thread)
    list(events.read())
    world.store.refs.delete(f"refs/threads/{thread}", seen=world.snapshot(thread).commit.oid)

    with pytest.raises(NoSuchThread):
        ids(events)
