import json
import os
from typing import Any

import pytest
from cli.program import Uwf


@pytest.fixture
def uwf(uwf: Uwf) -> Uwf:
    """Run `uwf` on a temporary store with a listener."""
    uwf.json("config", "set", "uwf.onEvent", uwf.agent('cat >>"$0.heard"', name="listener"))
    return uwf


def heard(uwf: Uwf) -> list[dict[str, Any]]:
    """Return the events since the last call."""
    path = uwf.place / "listener.heard"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def types(uwf: Uwf) -> list[str]:
    return [event["type"] for event in heard(uwf)]


def test_every_command_tells_what_it_did_and_no_more(uwf: Uwf, thread: str) -> None:
    assert types(uwf) == ["workflow:start"]
    uwf.json("thread", "step", thread)
    assert types(uwf) == ["node:enter", "node:exit", "workflow:progress"]
    uwf.json("thread", "list")
    uwf.json("thread", "show", thread)
    assert types(uwf) == []
    uwf.json("thread", "pause", thread)
    uwf.json("thread", "resume", thread)
    assert types(uwf) == ["workflow:progress"] * 2
    uwf.json("thread", "kill", uwf.json("thread", "fork", thread)["thread"])
    assert types(uwf) == ["workflow:start", "workflow:error"]


def test_listener_that_fails_is_a_note_and_nothing_else(uwf: Uwf, thread: str) -> None:
    uwf.agent("exit 1", name="listener")

    ran = uwf("thread", "step", thread)

    assert ran.status == 0
    assert json.loads(ran.out)["status"] == "ready"
    (note,) = [line for line in ran.err.splitlines() if "onEvent" in line]
    assert note.startswith("note: uwf.onEvent: ")


def test_a_committer_that_git_guessed_is_told_once(uwf: Uwf, thread: str) -> None:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_COMMITTER")
    }
    first = uwf("thread", "step", thread, environ=environ)
    assert "warning: git has no address of yours, so commits are by " in first.err
    assert "warning" not in uwf("thread", "pause", thread, environ=environ).err
