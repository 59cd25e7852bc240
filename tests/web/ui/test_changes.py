"""What streams tell of a store."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from commands.world import World

from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import lock_thread
from uwf_git.web.ui import site as changes_module
from uwf_git.web.ui.site import MOST_STREAMS, Changes, StoreLook


async def _next(stream: AsyncIterator[Any]) -> Any:
    """Return the next line; a beat would come later."""
    return await asyncio.wait_for(anext(stream), 10)


def test_a_change_is_told_to_all_and_again_to_who_comes_back(world: World) -> None:
    async def watch() -> None:
        changes = Changes(world.store, dict)
        one, other = changes.follow(None), changes.follow("x-1")
        hello = await _next(one)
        assert (hello["type"], hello["reset"]) == ("hello", True)
        assert (await _next(other))["reset"] is True

        thread = world.begun()

        for stream in (one, other):
            told = await _next(stream)
            assert (told["type"], told["threads"]) == ("threads", [thread])
        world.step(thread)
        later = changes.follow(told["at"])
        assert await _next(later) == {"type": "hello", "at": changes.at, "reset": False}
        assert (await _next(later))["threads"] == [thread]
        await changes.close()
        assert await _next(later) == {"type": "bye"}

    asyncio.run(watch())


def test_the_oldest_of_too_many_streams_is_ended(world: World) -> None:
    async def watch() -> None:
        changes = Changes(world.store, dict)
        streams = [changes.follow(None) for _ in range(MOST_STREAMS + 1)]
        for stream in streams:
            await _next(stream)
        assert await _next(streams[0]) == {"type": "bye"}
        waits = asyncio.ensure_future(_next(streams[1]))
        for _ in range(20):  # until it waits
            await asyncio.sleep(0)
        await _next(changes.follow(None))
        assert await waits == {"type": "bye"}
        await changes.close()
        assert await _next(streams[-1]) == {"type": "bye"}

    asyncio.run(watch())


def test_many_changes_are_told_as_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "_MOST_TOLD", 1)

    async def watch() -> None:
        changes = Changes(world.store, dict)
        stream = changes.follow(None)
        await _next(stream)
        world.put()
        for _ in range(2):
            world.start()
        told = await _next(stream)
        while "all" not in told:  # both may be seen one by one
            world.start()
            world.start()
            told = await _next(stream)
        assert told["threads"] == []
        await changes.close()

    asyncio.run(watch())


def test_a_log_that_grows_is_told(world: World) -> None:
    async def watch() -> None:
        thread = ThreadId("01J")
        numbers = {thread: 1}
        changes = Changes(world.store, lambda: dict(numbers))
        stream = changes.follow(None)
        await _next(stream)
        assert await _next(stream) == {"type": "log", "thread": "01J", "next": 1}
        numbers[thread] = 5
        assert await _next(stream) == {"type": "log", "thread": "01J", "next": 5}
        await changes.close()

    asyncio.run(watch())


def test_a_store_that_goes_and_comes_back_is_told(world: World) -> None:
    async def watch() -> None:
        changes = Changes(world.store, dict)
        stream = changes.follow(None)
        await _next(stream)
        os.rename(world.store.path, f"{world.store.path}.moved")
        told = await _next(stream)
        assert (told["type"], world.store.path in told["problem"]) == ("store", True)
        late = changes.follow(None)
        assert [(await _next(late))["type"], await _next(late)] == ["hello", told]
        os.rename(f"{world.store.path}.moved", world.store.path)
        assert await _next(stream) == {"type": "store", "problem": None}
        await changes.close()

    asyncio.run(watch())


def test_a_look_reads_no_objects(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = world.begun()
    look = StoreLook(world.store)
    monkeypatch.setattr(type(world.store.objects), "get_raw", None)
    assert look.look() == frozenset()
    for _ in range(20):
        assert look.look() == frozenset()
    monkeypatch.undo()
    world.step(thread)

    assert look.look() == {thread}


def test_work_that_begins_and_ends_without_a_commit_is_seen(world: World, thread: ThreadId) -> None:
    look = StoreLook(world.store)

    def look_often() -> frozenset[ThreadId]:
        # What works is looked at less often than the refs.
        return frozenset().union(*(look.look() for _ in range(5)))

    look_often()
    with lock_thread(world.store, thread, since_ms=1) as lock:
        lock.say("writer", "agent")
        assert look_often() == {thread}
        assert look_often() == frozenset()
    assert look_often() == {thread}
