import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from commands.counting import count_reads
from commands.turns import begin_turn
from commands.world import World, content_player, says
from dulwich.objects import Blob, Commit, ObjectID
from store.loose import lose

from uwf_git.commands.commit_events import EventOptions
from uwf_git.commands.journal import EventsRequest, EventStream, NoSuchEvent
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.engine.events import parse_event_id
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store

THREADS = 20
_DEADLINE_S = 120


@pytest.fixture
def troubles() -> list[StoreDamaged]:
    return []


@pytest.fixture
def follow(world: World, troubles: list[StoreDamaged]) -> Callable[..., EventStream]:
    """Return a stream on a store of its own, as in another process."""

    def make(since: str | None = None, **asked: Any) -> EventStream:
        store = open_store(world.store.path)
        after = None if since is None else parse_event_id(since)
        request = EventsRequest(since=after, **asked)
        return EventStream(store, request, EventOptions(), troubles.append)

    return make


def ids(events: EventStream) -> list[str]:
    return [event["id"] for event in events.read()]


def words(events: EventStream) -> list[str]:
    return [each.rpartition("-")[2] for each in ids(events)]


def test_what_transitions_share_is_read_once(
    world: World, follow: Callable[..., EventStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = world.begun()
    for _ in range(6):
        world.step(thread, says({"ok": False, "text": "x"}))
    first = ids(follow())[0]
    counted = count_reads(monkeypatch)

    assert len(ids(follow(first))) == 6 * 3

    kinds: dict[int, list[bytes]] = {}
    for name in tuple(counted.objects):
        kinds.setdefault(world.store.objects.get_raw(ObjectID(name))[0], []).append(name)
    blobs, commits = kinds[Blob.type_num], kinds[Commit.type_num]
    # A commit is read to find its place, and for its events.
    assert len(commits) <= 2 * len(set(commits)) + 1
    assert len(blobs) == len(set(blobs))


def test_after_each_event_there_is_one_rest_whenever_it_is_asked_for(
    world: World, follow: Callable[..., EventStream]
) -> None:
    first = world.begun()
    world.step(first)
    live = follow()
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

    assert ids(follow()) == seen
    assert len(set(seen)) == len(seen)
    for place, event in enumerate(seen):
        assert ids(follow(event)) == seen[place + 1 :]


def test_from_now_begins_with_the_open_turns(
    world: World, follow: Callable[..., EventStream]
) -> None:
    thread = world.begun()
    base = begin_turn(world, thread)
    earlier = follow(from_now=True)

    assert ids(earlier) == [f"{base}-enter"]
    # The other reader has recorded the turn; this one reports it too.
    later = follow(from_now=True)
    assert ids(later) == [f"{base}-enter"]
    world.step(thread)
    assert words(earlier) == words(later) == ["exit", "progress"]


def test_turn_that_only_a_reader_of_its_thread_saw_is_a_place_too(
    world: World, follow: Callable[..., EventStream]
) -> None:
    thread = world.begun()
    base = world.tip(thread)
    reader = follow(f"{base}-enter")
    assert ids(reader) == []
    world.step(thread)

    assert words(reader) == ["exit", "progress"]
    assert words(follow(f"{base}-enter")) == ["exit", "progress"]


@pytest.mark.parametrize("word", ["-exit", "-enter", "", "-start"])
def test_unknown_event_is_refused(
    world: World, follow: Callable[..., EventStream], word: str
) -> None:
    thread = world.begun()
    for commit in ("0" * 40, world.store.refs.find("refs/workflows/demo")):
        with pytest.raises(NoSuchEvent):
            ids(follow(f"{commit}{word}"))
    if word == "-exit":
        with pytest.raises(NoSuchEvent):
            ids(follow(f"{world.tip(thread)}-exit"))


def test_removed_thread_leaves_silence(
    world: World, follow: Callable[..., EventStream], troubles: list[StoreDamaged]
) -> None:
    gone, stays = world.begun(), world.start()
    reader = follow()
    list(reader.read())
    world.step(gone)
    tip = world.tip(gone)
    assert words(reader) == ["enter", "exit", "progress"]
    world.store.refs.delete(f"refs/threads/{gone}", seen=tip)
    lose(world.store, tip)
    world.step(stays)

    assert {event["taskId"] for event in reader.read()} == {stays}
    assert {event["taskId"] for event in follow().read()} == {gone, stays}
    assert troubles == []


def test_damage_in_one_thread_is_reported_and_the_others_are_read(
    world: World, follow: Callable[..., EventStream], troubles: list[StoreDamaged]
) -> None:
    broken, whole = world.begun(), world.start()
    reader = follow()
    list(reader.read())
    for thread in (broken, whole):
        world.step(thread)
    entry = world.snapshot(broken).get_entry("now.json").decode()
    lose(world.store, entry)

    for events in (reader, follow()):
        assert whole in {event["taskId"] for event in events.read()}
    assert troubles


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
            each.join(_DEADLINE_S)
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
    world: World, follow: Callable[..., EventStream], git: Callable[..., str]
) -> None:
    world.put()
    reader = follow()
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
                second = follow(seen[-1]["id"])
                place = len(seen)
            if second is not None:
                tail += second.read()
    seen += reader.read()
    if second is None:
        # The threads were quicker than the reader.
        second, place = follow(seen[80]["id"]), 81
    tail += second.read()

    check_whole(world, load.threads, seen)
    assert [event["id"] for event in tail] == [event["id"] for event in seen[place:]]
    assert packed


def test_nothing_is_missed_while_git_packs_everything(
    world: World, follow: Callable[..., EventStream], git: Callable[..., str]
) -> None:
    world.put()
    reader = follow()
    seen = list(reader.read())
    with Load(world, 8) as load:
        while not load.is_over():
            seen += reader.read()
            git("gc", "--quiet", cwd=Path(world.store.path))
    seen += reader.read()

    check_whole(world, load.threads, seen)
