"""Logs that pages show: read on as they grow."""

from pathlib import Path

import pytest
from commands.world import World

from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import NoSuchThread
from uwf_git.store.threads.local_files import log_path
from uwf_git.web.ui import site as live_logs_module
from uwf_git.web.ui.site import LiveLogs


@pytest.fixture
def logs(world: World) -> LiveLogs:
    return LiveLogs(lambda: world.store, {"DEPLOY_PASSWORD": "correct-Horse-battery-7"})


def say(world: World, thread: ThreadId, text: str) -> None:
    path = Path(log_path(world.store, thread))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as log:
        log.write(text)


def test_lines_come_once_and_whole(world: World, logs: LiveLogs, thread: ThreadId) -> None:
    say(world, thread, "one\ncorrect-Horse-battery-7\nhal")
    first = logs.read(thread, 0)
    assert first["lines"][0]["text"] == "one"
    assert "correct-Horse" not in str(first)
    assert first["next"] == 3

    say(world, thread, "f\nthree\n")

    assert logs.read_on() == {thread: 5}
    later = logs.read(thread, first["next"])
    assert [line["text"] for line in later["lines"]] == ["half", "three"]
    assert (later["next"], later["isRunning"], later["isCut"]) == (5, False, False)


def test_log_says_that_it_is_cut(world: World, logs: LiveLogs, thread: ThreadId) -> None:
    say(world, thread, "line\n" * 500)
    assert not logs.read(thread, 0)["isCut"]
    say(world, thread, "line\n" * 2000)
    newest = logs.read(thread, 0)
    assert (newest["lines"][0]["n"], newest["next"], newest["isCut"]) == (501, 2501, True)
    assert not logs.read(thread, 2400)["isCut"]


def test_log_that_was_long_is_cut(world: World, logs: LiveLogs, thread: ThreadId) -> None:
    say(world, thread, "line\n" * 501)
    read = logs.read(thread, 0)
    assert (len(read["lines"]), read["isCut"]) == (500, True)


def test_log_that_began_late_is_found(world: World, logs: LiveLogs, thread: ThreadId) -> None:
    assert logs.read(thread, 0)["lines"] == []
    say(world, thread, "one\n")
    assert logs.read_on() == {thread: 2}


def test_log_that_nobody_asks_for_is_let_go(
    world: World, logs: LiveLogs, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(world, thread, "one\n")
    logs.read(thread, 0)
    monkeypatch.setattr(live_logs_module, "_PATIENCE_S", -1.0)

    assert logs.read_on() == {}
    with pytest.raises(NoSuchThread):
        logs.read(ThreadId("01J99999999999999999999999"), 0)
