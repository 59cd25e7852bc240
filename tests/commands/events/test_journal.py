import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from commands.flows import copy_commit, put
from commands.forging import holds
from commands.turns import begin_turn, count_reads
from commands.world import Git, World, content_player, says
from dulwich.objects import Blob, Commit, ObjectID
from store.small_packs import lose

from uwf_git.commands.commit_events import EventOptions
from uwf_git.commands.journal import (
    EventsRequest,
    EventStream,
    JournalReader,
    NoSuchEvent,
    list_open_turns,
)
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.engine.events import EventId, parse_event_id
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.store import NotAStore, open_store
from uwf_git.store.threads.heads import NoSuchThread


class Reader:
    """A reader of the journal, and the damage that was reported to it."""

    def __init__(self, world: World) -> None:
        self.troubles: list[StoreDamaged] = []
        self.journal = JournalReader(world.store, lambda _, damage: self.troubles.append(damage))

    def take(self) -> list[tuple[str, ThreadId]]:
        return [line[:2] for line in self.journal.take()]


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
    lose(world.store, world.tip(broken))
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


def test_turn_that_is_played_is_found(world: World, thread: ThreadId) -> None:
    base = begin_turn(world, thread)
    os.utime(Path(world.store.local_path("run", thread, base), "pid"), ns=(0, 5_000_000))

    (turn,) = list_open_turns(world.store)

    assert (turn.started_after, turn.role, turn.agent) == (base, "writer", "nobody")
    assert (turn.started_ms, turn.node.iteration, turn.attempt) == (5, 1, 1)
    assert turn.record.thread == thread
    assert list(list_open_turns(world.store, known={base})) == []


def test_damaged_thread_has_no_turn_that_anybody_could_tell(world: World, thread: ThreadId) -> None:
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
    lose(world.store, world.tip(thread))


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


THREADS = 20


@pytest.fixture
def troubles() -> list[StoreDamaged]:
    return []


Follow = Callable[..., EventStream]


@pytest.fixture
def follow_stream(world: World, troubles: list[StoreDamaged]) -> Follow:
    """Return a stream on a store of its own, as in another process."""

    def make(since: str | None = None, **asked: Any) -> EventStream:
        store = open_store(world.store.path)
        request = EventsRequest(since=None if since is None else parse_event_id(since), **asked)
        return EventStream(store, request, EventOptions(), troubles.append)

    return make


def ids(events: EventStream) -> list[str]:
    return [event["id"] for event in events.read()]


def words(events: EventStream) -> list[str]:
    return [each.rpartition("-")[2] for each in ids(events)]


def test_what_transitions_share_is_read_once(
    world: World, follow_stream: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.stepped(says({"ok": False, "text": "x"}), times=6)
    first = ids(follow_stream())[0]
    counted = count_reads(monkeypatch)

    assert len(ids(follow_stream(first))) == 6 * 3

    kinds: dict[int, list[bytes]] = {}
    for name in tuple(counted.objects):
        kinds.setdefault(world.store.objects.get_raw(ObjectID(name))[0], []).append(name)
    blobs, commits = kinds[Blob.type_num], kinds[Commit.type_num]
    # A commit is read to find its place, and for its events.
    assert len(commits) <= 2 * len(set(commits)) + 1
    assert len(blobs) == len(set(blobs))


def test_after_each_event_there_is_one_rest_whenever_it_is_asked_for(
    world: World, follow_stream: Follow
) -> None:
    first = world.stepped()
    live = follow_stream()
    seen = ids(live)
    second = world.start()
    world.step(second)
    seen += ids(live)
    begin_turn(world, first, role="checker")
    seen += ids(live)
    world.pause(second)
    seen += ids(live)
    world.finish(first)
    seen += ids(live)

    assert ids(follow_stream()) == seen
    assert len(set(seen)) == len(seen)
    for place, event in enumerate(seen):
        assert ids(follow_stream(event)) == seen[place + 1 :]


def test_from_now_begins_with_the_open_turns_stream(world: World, follow_stream: Follow) -> None:
    thread = world.begun()
    base = begin_turn(world, thread)
    earlier = follow_stream(from_now=True)

    assert ids(earlier) == [f"{base}-enter"]
    # The other reader has recorded the turn; this one reports it too.
    later = follow_stream(from_now=True)
    assert ids(later) == [f"{base}-enter"]
    world.step(thread)
    assert words(earlier) == words(later) == ["exit", "progress"]


def test_turn_that_only_a_reader_of_its_thread_saw_is_a_place_too(
    world: World, follow_stream: Follow, thread: ThreadId
) -> None:
    base = world.tip(thread)
    reader = follow_stream(f"{base}-enter")
    assert ids(reader) == []
    world.step(thread)

    assert words(reader) == ["exit", "progress"]
    assert words(follow_stream(f"{base}-enter")) == ["exit", "progress"]


@pytest.mark.parametrize("word", ["-exit", "-enter", "", "-start"])
def test_unknown_event_is_refused(world: World, follow_stream: Follow, word: str) -> None:
    thread = world.begun()
    for commit in ("0" * 40, world.store.refs.find("refs/workflows/demo")):
        with pytest.raises(NoSuchEvent):
            ids(follow_stream(f"{commit}{word}"))
    if word == "-exit":
        with pytest.raises(NoSuchEvent):
            ids(follow_stream(f"{world.tip(thread)}-exit"))


def test_removed_thread_leaves_silence(
    world: World, follow_stream: Follow, troubles: list[StoreDamaged]
) -> None:
    gone, stays = world.begun(), world.start()
    reader = follow_stream()
    list(reader.read())
    world.step(gone)
    tip = world.tip(gone)
    assert words(reader) == ["enter", "exit", "progress"]
    world.store.refs.delete(f"refs/threads/{gone}", seen=tip)
    lose(world.store, tip)
    world.step(stays)

    assert {event["taskId"] for event in reader.read()} == {stays}
    assert {event["taskId"] for event in follow_stream().read()} == {gone, stays}
    assert troubles == []


def test_damaged_commit_that_was_taken_back_leaves_silence(
    world: World, follow_stream: Follow, troubles: list[StoreDamaged]
) -> None:
    thread = world.stepped()
    tip, ref = world.tip(thread), f"refs/threads/{thread}"
    reader = follow_stream()
    list(reader.read())
    commit = copy_commit(world.store, tip)
    commit.parents = [ObjectID(tip.encode())]
    holds(world.store, "now.json", b"{}")(commit)
    forged = put(world.store, commit)
    world.store.refs.advance(ref, seen=tip, to=forged)
    list(reader.read())
    assert [each.code for each in troubles] == ["damaged-commit"]
    world.store.refs.advance(ref, seen=forged, to=tip)
    world.step(thread)

    assert words(reader) == words(follow_stream(f"{tip}-progress")) == STEP
    assert len(troubles) == 1


def test_place_in_a_removed_thread_stays_a_place(
    world: World, follow_stream: Follow, troubles: list[StoreDamaged]
) -> None:
    gone, stays = world.begun(), world.start()
    list(follow_stream().read())
    world.step(gone)
    place = f"{world.tip(gone)}-exit"
    list(follow_stream().read())
    world.step(stays)
    world.store.refs.delete(f"refs/threads/{gone}", seen=world.tip(gone))
    lose(world.store, parse_event_id(place).commit)

    assert words(follow_stream(place)) == STEP
    assert troubles == []


def test_store_that_has_gone_ends_its_reader_and_is_not_made_anew(
    world: World, follow_stream: Follow
) -> None:
    reader = follow_stream()
    list(reader.read())
    os.rename(world.store.path, f"{world.store.path}.moved")

    with pytest.raises(NotAStore, match="does not exist"):
        list(reader.read())
    assert not os.path.exists(world.store.path)


class Load:
    """Threads that run to their end concurrently."""

    def __init__(self, world: World, count: int) -> None:
        self.world = world
        self.threads = [world.start() for _ in range(count)]
        self.failures: list[BaseException] = []
        self.at_work = [
            threading.Thread(target=self._run, args=(self.threads[place::4],)) for place in range(4)
        ]

    def __enter__(self) -> Self:
        for each in self.at_work:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.at_work:
            each.join(120)
        assert self.failures == []

    def is_over(self) -> bool:
        return not any(each.is_alive() for each in self.at_work)

    def _run(self, threads: list[ThreadId]) -> None:
        try:
            store = open_store(self.world.store.path, environ=self.world.caller.environ)
            left = list(threads)
            while left:
                for thread in list(left):
                    request = StepRequest(thread, content_player, Choice())
                    if step_thread(store, self.world.caller, request).status == "completed":
                        left.remove(thread)
        except BaseException as error:
            self.failures.append(error)
            raise


def check_whole(world: World, threads: list[ThreadId], events: list[dict[str, Any]]) -> None:
    """Check that no event is missing or doubled, and that each thread's events are in order."""
    told = [event["id"] for event in events]
    assert len(told) == len(set(told))
    step = ["enter", "exit", "progress"]
    for thread in threads:
        mine = [event["id"].rpartition("-")[2] for event in events if event["taskId"] == thread]
        assert mine == ["start", *step, *step, "complete"]
        depths = [event["depth"] for event in events if event["taskId"] == thread]
        assert depths == sorted(depths)


def test_nothing_is_missed_or_doubled_while_twenty_threads_run(
    world: World, follow_stream: Follow, git: Git
) -> None:
    world.put()
    reader = follow_stream()
    seen = list(reader.read())
    second: EventStream | None = None
    tail: list[dict[str, Any]] = []
    with Load(world, THREADS) as load:
        packed = 0
        while not load.is_over():
            seen += reader.read()
            if len(seen) > 40 * (packed + 1) and packed < 3:
                git("pack-refs", "--all", "--prune", cwd=Path(world.store.path))
                packed += 1
            if second is None and len(seen) > 80:
                # Another reader continues where this one is.
                second = follow_stream(seen[-1]["id"])
                place = len(seen)
            if second is not None:
                tail += second.read()
    seen += reader.read()
    if second is None:
        # The threads were quicker than the reader.
        second, place = follow_stream(seen[80]["id"]), 81
    tail += second.read()

    check_whole(world, load.threads, seen)
    assert [event["id"] for event in tail] == [event["id"] for event in seen[place:]]
    assert packed


def test_nothing_is_missed_while_git_packs_everything(
    world: World, follow_stream: Follow, git: Git
) -> None:
    world.put()
    reader = follow_stream()
    seen = list(reader.read())
    with Load(world, 8) as load:
        while not load.is_over():
            seen += reader.read()
            git("gc", "--quiet", cwd=Path(world.store.path))
    seen += reader.read()

    check_whole(world, load.threads, seen)
