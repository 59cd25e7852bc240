"""The events of threads, kept while their tips stay."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from commands.world import World
from refusing import refuses

from uwf_git.commands.inspect.story import StoryReader, make_mask
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import get_head
from uwf_git.web.ui import site as stories_module
from uwf_git.web.ui.site import Stories


def test_tabs_that_ask_at_once_share_one_reading(
    world: World, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    read_one = StoryReader.read

    def count(self: StoryReader, thread: ThreadId, tip: Oid, **how: bool) -> Any:
        read.append(1)
        return read_one(self, thread, tip, **how)

    monkeypatch.setattr(StoryReader, "read", count)
    stories = Stories(make_mask({}))

    def ask(_tab: int) -> int:
        store = open_store(world.store.path)
        return len(stories.read(store, get_head(store, thread)))

    with ThreadPoolExecutor(8) as tabs:
        assert set(tabs.map(ask, range(16))) == {1}
    assert len(read) == 1
    world.step(thread)
    assert ask(0) == 2
    assert len(read) == 2


def test_only_the_last_threads_are_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stories_module, "_STORIES_MOST_KEPT", 1)
    one, two = world.begun(), world.start()
    stories = Stories(make_mask({}))
    for thread in (one, two, one):
        entries = stories.read(world.store, get_head(world.store, thread))
        assert [entry["thread"] for entry in entries] == [thread]
    with refuses("no-such-entry"):
        stories.find(world.store, get_head(world.store, one), "0" * 40)
