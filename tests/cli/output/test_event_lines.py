from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uwf_git.cli.output.screen import Screen
from uwf_git.cli.output.step_lines import EventLines
from uwf_git.cli.session.settings import Session
from uwf_git.store.store import create_store

THREAD = "01J7K9M2XNPQR5VWBCDF8G3H4T"
EVENT: dict[str, Any] = {
    "type": "workflow:progress", "taskId": THREAD, "commit": "c", "timestamp": 1_760_000_000_000,
    "payload": {}, "event": "step", "role": "writer", "depth": 3, "status": "ready",
    "subject": "writer: Said.", "reason": None,
}  # fmt: skip
Lines = Callable[..., list[str]]


@pytest.fixture
def lines(session: Session, tmp_path: Path) -> Lines:
    """Return the lines of events, each a change of EVENT, as a person sees them."""
    environ = {"COLUMNS": "80"}
    there = session._replace(output_format="text", stdout_is_tty=True, environ=environ)
    events = EventLines(there, Screen(80), create_store(str(tmp_path / "store.git")))

    def add(*changes: dict[str, Any]) -> list[str]:
        return [line for change in changes for line in events.add({**EVENT, **change})]

    return add


def test_step_is_one_line_with_how_long_it_took(lines: Lines) -> None:
    entered = {"type": "node:enter", "payload": {}}
    left = {"type": "node:exit", "payload": {"durationMs": 700}}

    (line,) = lines(entered, left, {})
    assert line.startswith(f"08:53:20  {THREAD[:10]}  ✓  3 writer    Said.  ")
    assert line.endswith("   0.7 s")
    assert len(line) == 79
    assert lines({"commit": "d"})[0].endswith("Said.")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"event": "attempt", "payload": {"error": "no"}}, "↻    writer    no"),
        ({"event": "attempt", "status": "failed", "reason": "x"}, "✗    writer    x"),
        (
            {"event": "pause", "status": "paused", "role": None, "subject": "paused"},
            "‖              paused",
        ),
    ],
)
def test_other_events_have_the_mark_of_the_status(
    change: dict[str, Any], told: str, lines: Lines
) -> None:
    assert lines(change) == [f"08:53:20  {THREAD[:10]}  {told}"]


def test_another_day_is_a_line(lines: Lines) -> None:
    day_ms = 24 * 3600 * 1000
    tomorrow = {"timestamp": EVENT["timestamp"] + day_ms}

    assert [line.split()[0] for line in lines({}, tomorrow, tomorrow)] == [
        "08:53:20", "2025-10-10", "08:53:20", "08:53:20",
    ]  # fmt: skip
