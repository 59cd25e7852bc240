import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.inspect.test_shared_step import fork
from commands.world import World, says
from store.loose import lose

from uwf_git.commands.inspect.read import SearchRequest, search_threads
from uwf_git.model.names import ThreadId


def rows(world: World, words: str, **asked: Any) -> list[dict[str, Any]]:
    return list(search_threads(world.store, SearchRequest(re.compile(words), **asked)))


def places(world: World, words: str, **asked: Any) -> list[tuple[str, int, str]]:
    """Return thread, step and field of each row."""
    return [(row["thread"], row["step"], row["field"]) for row in rows(world, words, **asked)]


@pytest.fixture
def thread(world: World) -> ThreadId:
    """Return a thread of two steps, with `needle` everywhere."""
    world.put()
    thread = world.start(prompt="Find the needle.")
    world.step(thread, says({"text": "a needle"}, "No such thing."))
    world.step(thread, says({"ok": False, "list": [{"is": "needle"}]}, "needle, needle"))
    return thread


def test_prompt_meta_and_content_are_looked_at_newest_first(world: World, thread: ThreadId) -> None:
    assert places(world, "needle") == [
        (thread, 2, "meta.list[0].is"),
        (thread, 2, "content"),
        (thread, 1, "meta.text"),
        (thread, 0, "prompt"),
    ]


def test_step_that_was_taken_back_is_not_found(world: World, thread: ThreadId) -> None:
    forked = fork(world, thread, at="1")
    world.poke(forked)
    world.step(forked, says({"text": "a new needle"}))

    assert places(world, "a new needle") == [(forked, 1, "meta.text")]
    assert places(world, "a needle") == [(thread, 1, "meta.text")]
    world.poke(thread)
    assert (thread, 2, "content") not in places(world, "needle")


def test_damaged_thread_is_one_row_and_the_others_are_searched(
    world: World, thread: ThreadId, git: Callable[..., str]
) -> None:
    spoiled = world.start(prompt="a spoiled needle")
    world.step(spoiled, says({"text": "y"}, "only here"))
    world.step(spoiled, says({"ok": True}, "needle"))
    store = Path(world.store.path)
    tip = world.tip(spoiled)
    found = git("grep", "-l", "only here", tip, "--", "nodes/*.md", cwd=store).split()[0]
    blob = git("rev-parse", found, cwd=store).strip()
    lose(world.store, blob)
    other = world.start()
    (store / "refs" / "threads" / other).write_text("garbage\n")
    world.reopen()

    told = rows(world, "needle")

    assert [row["thread"] for row in told[:3]] == [other, spoiled, spoiled]
    assert [row.get("status") for row in told[:3]] == ["damaged", None, "damaged"]
    assert "is missing" in told[2]["error"]
    assert {row["thread"] for row in told[3:]} == {thread}
