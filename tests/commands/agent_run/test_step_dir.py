import os
from pathlib import Path

import pytest

from uwf_git.commands.agent_run.runs import ReportedUsage, read_step_dir
from uwf_git.commands.turn.turn import StepFiles

MIB = 1024 * 1024


@pytest.mark.parametrize("space", [" ", "\n"])
def test_prompt_is_cut_where_a_word_ends(tmp_path: Path, space: str) -> None:
    (tmp_path / "prompt.md").write_text("x" * (MIB - 10) + space + "my-own-secret-1")

    prompt = read_step_dir(str(tmp_path)).prompt

    assert prompt == "x" * (MIB - 10) + "\n[… 16 bytes left out …]\n"


def test_trace_is_its_events_and_how_many_lines_are_none(tmp_path: Path) -> None:
    lines = ['{"type": "turn"}', "", "no json", "[1]", '{"a": NaN}', '{"b": "\\ud800"}', '{"c": 1}']
    (tmp_path / "trace.jsonl").write_text("\n".join(lines))

    trace = read_step_dir(str(tmp_path)).trace

    assert trace == {"events": [{"type": "turn"}, {"c": 1}], "badLines": 4}


def test_trace_that_is_too_long_is_cut_at_a_line(tmp_path: Path) -> None:
    line = '{"type": "tool", "n": 12345}\n'
    (tmp_path / "trace.jsonl").write_text(line * 100_000)

    trace = read_step_dir(str(tmp_path)).trace

    assert trace is not None
    assert len(trace["events"]) == MIB // len(line)
    assert len(trace["events"]) + trace["leftOut"] == 100_000
    assert "badLines" not in trace


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"kind": 7, "usage": []}',
        '{"kind": "Rate limit!", "usage": {}}',
        '{"kind": "interrupted"}',
        f'{{"kind": "{"x" * 50}"}}',
        '{"kind": NaN, "usage": {"a": Infinity}}',
    ],
)
def test_failure_that_says_nothing_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "failure.json").write_text(text)

    assert read_step_dir(str(tmp_path)) == StepFiles()


def test_pipe_in_a_file_s_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "prompt.md")
    (tmp_path / "failure.json").mkdir()
    (tmp_path / "elsewhere").write_text("secret")
    (tmp_path / "trace.jsonl").symlink_to(tmp_path / "elsewhere")

    assert read_step_dir(str(tmp_path)) == StepFiles()


@pytest.mark.parametrize("content", [b"", b'{"a": 1}\n' * 10])
def test_files_without_an_end_are_read_up_to_a_limit(tmp_path: Path, content: bytes) -> None:
    for name in ("prompt.md", "failure.json", "trace.jsonl"):
        (tmp_path / name).write_bytes(content)
        os.truncate(tmp_path / name, 15 * 2**40)

    left = read_step_dir(str(tmp_path))

    assert left.prompt.endswith(f"\0\n[… {15 * 2**40 - MIB:,} bytes left out …]\n")
    assert left.trace == {"events": [{"a": 1}] * content.count(b"\n"), "leftOut": 1}
    assert left.kind is None


def test_reported_usage_is_the_sum_of_the_turns_so_far(tmp_path: Path) -> None:
    reported = ReportedUsage(str(tmp_path))
    assert reported.read() == {}

    with open(tmp_path / "trace.jsonl", "ab", buffering=0) as trace:
        trace.write(
            b'{"type": "turn", "usage": {"inputTokens": 2}}\n{"type": "turn", "usage": {"in'
        )
        assert reported.read() == {"inputTokens": 2}
        trace.write(b'putTokens": 3, "costUsd": 0.5}}\nno json with "usage"\n[]\n')
        trace.write(b'{"type": "result", "usage": {"inputTokens": 5}}\n')
        trace.write(b'{"type": "turn", "usage": 7}\n')
        assert reported.read() == reported.read() == {"inputTokens": 5, "costUsd": 0.5}


def test_reported_usage_is_found_behind_a_line_that_is_longer_than_all(tmp_path: Path) -> None:
    reported = ReportedUsage(str(tmp_path))
    event = b'\n{"type": "turn", "usage": {"turns": 1}}\n'
    (tmp_path / "trace.jsonl").write_bytes(b"x" * 3_000_000 + event)

    assert [reported.read() for _look in range(4)][-1] == {"turns": 1}
