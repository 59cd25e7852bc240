"""Views of a thread while it is driven, and killed at any transition."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from plan.played import start_task
from store.killing import dies_at, moments_of

from uwf_git.commands.plan import Views
from uwf_git.model.names import Oid
from uwf_git.plan.phases import STATE_FILE, read_story
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.naming import resolve_head

LOGS = "docs/memory"
WHERE = {"thread": "T", "repo": "/s.git", "address": "127.0.0.1", "port": 9527}


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Oid]]:
    """Return a store with a thread that has ended, and the thread's commits, oldest first."""
    place = tmp_path_factory.mktemp("driven")
    task = start_task(place / "store.git", place, create=True)
    task.run()
    task.retry("use pip")
    task.run()
    store = open_store(str(place / "store.git"))
    tip = resolve_head(store, task.task_id).commit
    return store, [Oid(each.commit) for each in read_story(store, tip)]


def drives(commits: list[Oid], size: int) -> Iterator[list[Oid]]:
    """Cut *commits* into drives that were killed after *size* transitions each."""
    for begin in range(0, len(commits), size):
        yield commits[begin : begin + size]


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize("loses", [False, True], ids=["written", "last not written"])
def test_no_entry_is_missing_or_there_twice(
    driven: tuple[Store, list[Oid]], tmp_path: Path, size: int, *, loses: bool
) -> None:
    store, commits = driven
    alone = tmp_path / "alone"
    alone.mkdir()
    Views(store, str(alone)).update(commits[-1], WHERE)

    for drive in drives(commits, size):
        views = Views(store, str(tmp_path))
        for commit in drive[:-1] if loses and drive[-1] != commits[-1] else drive:
            views.update(commit, WHERE)
            told = json.loads((tmp_path / STATE_FILE).read_text(encoding="utf-8"))
            assert (told["phase"], told["retryCount"]) == (views.state.phase, views.state.tries)

    logs = [sorted((place / "docs/memory").iterdir()) for place in (tmp_path, alone)]
    assert [[log.name, log.read_text()] for log in logs[0]] == [
        [log.name, log.read_text()] for log in logs[1]
    ]
    text = "".join(log.read_text(encoding="utf-8") for log in logs[0])
    assert [text.count(f"commit {commit[:10]}\n") for commit in commits] == [1] * len(commits)


def test_update_killed_at_any_moment_is_made_up_for(
    driven: tuple[Store, list[Oid]], tmp_path: Path
) -> None:
    store, commits = driven

    def update(place: Path, number: int) -> None:
        Views(store, str(place)).update(commits[number], WHERE)

    def begun(name: str) -> Path:
        place = tmp_path / name
        place.mkdir()
        update(place, 4)
        return place

    whole = begun("whole")
    moments = moments_of(lambda: update(whole, -1))
    assert len(moments) > 5
    for number in range(1, len(moments) + 1):
        place = begun(str(number))
        assert dies_at(number, partial(update, place, -1))
        update(place, -1)
        for each in (STATE_FILE, *(f"docs/memory/{log}" for log in os.listdir(whole / LOGS))):
            assert (place / each).read_bytes() == (whole / each).read_bytes()
        assert sorted(map(len, os.walk(place))) == sorted(map(len, os.walk(whole)))


def test_update_that_fails_is_made_up_for(driven: tuple[Store, list[Oid]], tmp_path: Path) -> None:
    store, commits = driven
    views = Views(store, str(tmp_path))
    (tmp_path / "docs").write_text("in the way")
    with pytest.raises(OSError, match="docs"):
        views.update(commits[-1], WHERE)
    assert views.state.phase == "completed"
    (tmp_path / "docs").unlink()

    for _ in range(2):
        views.update(commits[-1], WHERE)
        (log,) = (tmp_path / "docs/memory").iterdir()
        assert log.read_text(encoding="utf-8").count("\ncommit ") == len(commits)
        # A log that an agent removes comes back whole.
        log.unlink()
