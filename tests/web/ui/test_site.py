"""The views of threads, and their events, kept while their tips stay."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from commands.world import World
from refusing import refuses
from web.stories import tell_many
from web.ui.asking import Ask

from uwf_git.commands.inspect.story import StoryReader, make_mask
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.local_files import lock_thread
from uwf_git.web.ui import site as stories_module
from uwf_git.web.ui.site import Stories


def test_answers_are_as_written_down(
    ask: Ask, world: World, golden: Callable[[str, str], None]
) -> None:
    threads = tell_many(world)
    told = {"/api/threads": ask("GET", "/api/threads", show="all")}
    told["/api/about"] = {**ask("GET", "/api/about"), "version": "…"}
    paths = ["/api/agents", "/api/workflows/work"]
    paths += [f"/api/threads/{threads['waiting']}/{each}" for each in ("prompt", "question")]
    for thread in threads.values():
        path = f"/api/threads/{thread}"
        told[path] = ask("GET", path)
        found = [each["commit"] for each in told[path]["entries"] if "commit" in each]
        paths += [f"{path}/entries/{commit}" for commit in found]
    told |= {path: ask("GET", path) for path in paths}
    with lock_thread(world.store, threads["branch"], since_ms=1) as lock:
        lock.say("reviewer", "agent")
        told["at work"] = ask("GET", f"/api/threads/{threads['branch']}")
    text = json.dumps(told, indent=1, ensure_ascii=False).replace(str(world.place.parent), "…")
    golden("web/answers.json", re.sub(r"(.{2,20}\\n)\1+", r"\1", text))


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
