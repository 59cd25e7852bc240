import json
import os
from pathlib import Path

import pytest

from uwf_git.agentkit.step_files import (
    FAILURE,
    PROMPT,
    SUBMITTED,
    extend_prompt,
    open_trace,
    read_submitted,
    write_failure,
    write_prompt,
)


def test_prompt_and_failure_lie_in_the_folder_of_the_step(tmp_path: Path) -> None:
    write_prompt(str(tmp_path), "Tú \ud800")
    write_failure(str(tmp_path), {"kind": "auth", "usage": {"turns": 1}})

    assert (tmp_path / PROMPT).read_text(encoding="utf-8") == "Tú ?"
    assert json.loads((tmp_path / FAILURE).read_text()) == {"kind": "auth", "usage": {"turns": 1}}


def test_prompt_is_kept_with_what_an_adapter_put_after_it(tmp_path: Path) -> None:
    write_prompt(str(tmp_path), "Do it \ud800.\r\n")

    extend_prompt(str(tmp_path), "Mend it.", "Mend it. In JSON.")
    extend_prompt(str(tmp_path), "Do it \ud800.\r\n", "{}")
    assert (tmp_path / PROMPT).read_bytes() == b"Do it ?.\r\n"
    extend_prompt(str(tmp_path), "Do it \ud800.\r\n", "Do it ?.\r\nIn JSON.\n")

    assert (tmp_path / PROMPT).read_bytes() == b"Do it ?.\r\nIn JSON.\n"


def test_without_a_step_nothing_is_written(tmp_path: Path) -> None:
    write_prompt(None, "x")
    extend_prompt(None, "x", "x, in JSON")
    extend_prompt(str(tmp_path), "x", "x, in JSON")
    write_failure(None, {})
    with open_trace(None) as note:
        note({"type": "turn"})

    assert read_submitted(None) is None
    assert list(tmp_path.iterdir()) == []


def test_trace_has_a_line_for_each_event(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"type": "before"}\n')

    with open_trace(str(path)) as note:
        note({"type": "tool", "name": "bash"})
        lines = path.read_text().splitlines()

    event = json.loads(lines[1])
    assert event.pop("time") > 1_700_000_000_000
    assert event == {"type": "tool", "name": "bash"}


def test_event_is_shortened_to_what_can_be_read(tmp_path: Path) -> None:
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]

    with open_trace(str(tmp_path / "trace")) as note:
        note({"output": "x" * 1_000_000, "deep": deep, "many": [0] * 10_000, "odd": {1}})

    line = (tmp_path / "trace").read_text()
    event = json.loads(line)
    assert len(line) < 10_000
    assert event["output"].endswith("x[… 996,000 characters left out …]")
    assert (len(event["many"]), event["odd"]) == (200, "{1}")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"meta": {"ok": true}, "content": "x"}', {"meta": {"ok": True}, "content": "x"}),
        ('{"content": "x"}', None),
        ("[]", None),
        ('{"meta":', None),
    ],
)
def test_what_was_handed_in_is_read_if_it_is_whole(
    tmp_path: Path, text: str, found: object
) -> None:
    assert read_submitted(str(tmp_path)) is None

    (tmp_path / SUBMITTED).write_text(text)

    assert read_submitted(str(tmp_path)) == found


def test_file_without_an_end_is_not_handed_in(tmp_path: Path) -> None:
    (tmp_path / SUBMITTED).write_text('{"meta": 1}')
    os.truncate(tmp_path / SUBMITTED, 15 * 2**40)

    assert read_submitted(str(tmp_path)) is None

    (tmp_path / SUBMITTED).unlink()
    os.mkfifo(tmp_path / SUBMITTED)

    assert read_submitted(str(tmp_path)) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_full_disk_costs_the_trace_and_not_the_answer(tmp_path: Path) -> None:
    (tmp_path / FAILURE).symlink_to("/dev/full")

    with open_trace("/dev/full") as note:
        note({"type": "turn"})
    write_failure(str(tmp_path), {"kind": "auth"})
