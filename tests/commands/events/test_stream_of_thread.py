from pathlib import Path
from typing import Any

import pytest
from commands.turns import begin_turn
from commands.world import World
from store.loose import lose

from uwf_git.commands.control.steer import pause_thread, resume_thread
from uwf_git.commands.events.commit_events import EventOptions
from uwf_git.commands.events.journal import EventsRequest, EventStream, NoSuchEvent
from uwf_git.engine.events import EventId, parse_event_id
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import NoSuchThread


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun()


def refuse(damage: StoreDamaged) -> None:
    """Fail: damage to the one thread is raised, and to others left out."""
    pytest.fail(damage.message)


def follow(world: World, thread: ThreadId, **asked: Any) -> EventStream:
    return EventStream(world.store, EventsRequest(thread, **asked), EventOptions(), refuse)


def ids(events: EventStream) -> list[str]:
    return [event["id"] for event in events.read()]


def words(events: EventStream) -> list[str]:
    return [each.rpartition("-")[2] for each in ids(events)]


STEP = ["enter", "exit", "progress"]


def test_existing_events_come_first_then_new_ones(world: World, thread: ThreadId) -> None:
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


def test_since_each_event_yields_the_rest(world: World, thread: ThreadId) -> None:
    while world.step(thread).status != "completed":
        pass
    everything = ids(follow(world, thread))

    for place, event in enumerate(everything):
        since = parse_event_id(event)
        assert ids(follow(world, thread, since=since)) == everything[place + 1 :]


def test_open_turn_is_reported_once(world: World, thread: ThreadId) -> None:
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


def test_since_an_enter_event_nothing_is_missed(world: World, thread: ThreadId) -> None:
    base = begin_turn(world, thread)
    pause_thread(world.store, world.caller, thread)
    resume_thread(world.store, world.caller, thread)
    world.step(thread)

    told = words(follow(world, thread, since=EventId(base, "enter")))

    assert told == ["progress", "progress", "exit", "progress"]


def test_from_now_begins_with_the_open_turns(world: World, thread: ThreadId) -> None:
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


def test_turn_stays_where_it_was_first_seen(world: World, thread: ThreadId) -> None:
    live = follow(world, thread)
    seen = ids(live)
    base = begin_turn(world, thread)
    seen += ids(live)
    pause_thread(world.store, world.caller, thread)
    resume_thread(world.store, world.caller, thread)
    world.step(thread)
    seen += ids(live)

    assert seen[1] == f"{base}-enter"
    assert ids(follow(world, thread)) == seen
    for place, event in enumerate(seen):
        assert ids(follow(world, thread, since=parse_event_id(event))) == seen[place + 1 :]


def break_tip(world: World, thread: ThreadId) -> None:
    tip = world.snapshot(thread).commit.oid
    lose(world.store, tip)


def test_damage_to_another_thread_is_left_out(world: World, thread: ThreadId) -> None:
    other, spoiled = world.start(), world.start()
    events = follow(world, thread)
    assert words(events) == ["start"]
    for each in (thread, other):
        world.step(each)
    break_tip(world, other)
    Path(world.store.path, "refs/threads", spoiled).write_text("garbage\n")

    assert words(events) == STEP
    assert words(follow(world, thread)) == ["start", *STEP]


def test_damage_to_the_thread_is_raised(world: World, thread: ThreadId) -> None:
    events = follow(world, thread)
    assert words(events) == ["start"]
    world.step(thread)
    break_tip(world, thread)

    for reader in (events, follow(world, thread)):
        with pytest.raises(StoreDamaged, match="is missing"):
            ids(reader)
