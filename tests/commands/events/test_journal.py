import os
from pathlib import Path
from typing import Any

import pytest
from commands.events.test_stream import ids, words
from commands.turns import begin_turn
from commands.world import World
from store.loose import lose

from uwf_git.commands.commit_events import EventOptions
from uwf_git.commands.journal import (
    EventsRequest,
    EventStream,
    JournalReader,
    NoSuchEvent,
    list_open_turns,
)
from uwf_git.engine.events import EventId, parse_event_id
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import NoSuchThread


class Reader:
    """A reader of the journal, and the damage that was reported to it."""

    def __init__(self, world: World) -> None:
        self.troubles: list[StoreDamaged] = []
        self.journal = JournalReader(world.store, lambda _, damage: self.troubles.append(damage))

    def take(self) -> list[tuple[str, ThreadId]]:
        return [line[:2] for line in self.journal.take()]


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun()


@pytest.fixture
def reader(world: World) -> Reader:
    return Reader(world)


def test_turn_begins_after_the_transition_that_it_follows(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    reader.take()
    world.step(thread)
    begin_turn(world, thread, role="checker")
    world.patch(thread, {"a": 1})

    assert [word for word, _ in reader.take()] == ["moved", "enter", "moved"]


def test_leftover_run_directory_of_a_recorded_turn_is_no_line(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    reader.take()
    base = world.tip(thread)
    world.step(thread)
    reader.take()
    Path(world.store.local_path("run", thread, base)).mkdir(parents=True)

    assert reader.take() == []


def test_damaged_thread_is_reported_once_and_the_others_are_read(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    broken, spoiled = world.start(), world.start()
    reader.take()
    for each in (thread, broken):
        world.step(each)
    tip = world.tip(broken)
    lose(world.store, tip)
    Path(world.store.path, "refs/threads", spoiled).write_text("garbage\n")

    assert reader.take() == [("moved", thread)]
    assert reader.take() == []
    assert sorted(error.code for error in reader.troubles) == ["bad-ref", "damaged-commit"]


def test_journal_that_is_deleted_is_begun_anew_and_nothing_is_missed(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    reader.take()
    other = Reader(world)
    other.take()
    world.step(thread)
    reader.take()
    os.unlink(world.store.local_path("events"))
    world.step(thread)

    assert reader.take() == [("moved", thread)]
    # It has seen neither of the two steps.
    assert other.take() == [("moved", thread)] * 2


def test_journal_that_holds_something_else_is_begun_anew(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    path = Path(world.store.local_path("events"))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"something else\n" * 100)

    assert reader.take() == [("known", thread)]
    path.write_bytes(path.read_bytes() + b"garbage\n")
    world.step(thread)
    assert reader.take() == [("moved", thread)]
    assert Reader(world).take() == [("known", thread), ("moved", thread)]


def test_reader_without_write_permission_keeps_its_own_journal(
    world: World, thread: ThreadId, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so the refusal is simulated.
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith("/uwf/events"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)

    assert reader.take() == [("known", thread)]
    world.step(thread)
    assert reader.take() == [("moved", thread)]
    assert reader.take() == []


def test_turn_that_is_played_is_found(world: World) -> None:
    thread = world.begun()
    base = begin_turn(world, thread)
    os.utime(Path(world.store.local_path("run", thread, base), "pid"), ns=(0, 5_000_000))

    (turn,) = list_open_turns(world.store)

    assert (turn.started_after, turn.role, turn.agent) == (base, "writer", "nobody")
    assert (turn.started_ms, turn.node.iteration, turn.attempt) == (5, 1, 1)
    assert turn.record.thread == thread
    assert list(list_open_turns(world.store, known={base})) == []


def test_damaged_thread_has_no_turn_that_anybody_could_tell(world: World) -> None:
    thread = world.begun()
    begin_turn(world, thread)
    Path(world.store.path, "refs/threads", thread).write_text("garbage\n")

    assert list(list_open_turns(world.store)) == []


def refuse(damage: StoreDamaged) -> None:
    """Fail: damage to the one thread is raised, and to others left out."""
    pytest.fail(damage.message)


def follow(world: World, thread: ThreadId, **asked: Any) -> EventStream:
    return EventStream(world.store, EventsRequest(thread, **asked), EventOptions(), refuse)


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


def test_open_turn_is_reported_once(world: World, thread: ThreadId) -> None:
    events = follow(world, thread)
    assert words(events) == ["start"]
    base = begin_turn(world, thread)

    assert ids(events) == [f"{base}-enter"]
    assert ids(events) == []
    world.pause(thread)
    assert words(events) == ["progress"]
    world.resume(thread)
    world.step(thread)
    assert words(events) == ["progress", "exit", "progress"]


def test_from_now_begins_with_the_open_turns(world: World, thread: ThreadId) -> None:
    world.step(thread)
    assert words(follow(world, thread, from_now=True)) == []
    base = begin_turn(world, thread, role="checker")

    assert ids(follow(world, thread, from_now=True)) == [f"{base}-enter"]


def test_event_of_another_thread_is_no_place_in_this_one(world: World, thread: ThreadId) -> None:
    other = world.tip(world.start())

    for event in (EventId(other), EventId(other, "start"), EventId(other, "enter")):
        with pytest.raises(NoSuchEvent, match=f"in thread {thread}"):
            ids(follow(world, thread, since=event))
    mine = world.tip(thread)
    with pytest.raises(NoSuchEvent, match=f"{mine}-exit"):
        ids(follow(world, thread, since=EventId(mine, "exit")))


def test_thread_that_is_removed_ends_it(world: World, thread: ThreadId) -> None:
    events = follow(world, thread)
    list(events.read())
    world.store.refs.delete(f"refs/threads/{thread}", seen=world.tip(thread))

    with pytest.raises(NoSuchThread):
        ids(events)


def test_turn_stays_where_it_was_first_seen(world: World, thread: ThreadId) -> None:
    live = follow(world, thread)
    seen = ids(live)
    base = begin_turn(world, thread)
    seen += ids(live)
    world.pause(thread)
    world.resume(thread)
    world.step(thread)
    seen += ids(live)

    assert seen[1] == f"{base}-enter"
    assert ids(follow(world, thread)) == seen
    for place, event in enumerate(seen):
        assert ids(follow(world, thread, since=parse_event_id(event))) == seen[place + 1 :]


def break_tip(world: World, thread: ThreadId) -> None:
    tip = world.tip(thread)
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
