"""A thread is not ended while an orphaned agent works."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands.at_work import BEGUN, HANG, begin, pids
from commands.turns import begin_turn
from commands.world import World
from refusing import refuses

from uwf_git.commands.agent_run.runs import (
    ReportedUsage,
    check_nothing_runs,
    forget_run,
    list_finished_runs,
    read_step_dir,
)
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.local_files import get_run_dir

OTHER = Oid("5" * 40)


def test_finished_run_of_another_commit_is_not_forgotten(world: World) -> None:
    thread = world.begun()
    commit = begin_turn(world, thread)
    other = Path(get_run_dir(world.store, thread, OTHER).path)
    other.mkdir()

    (other / "exit").write_text("0\n")
    forget_run(world.store, thread, commit)

    assert list_finished_runs(world.store, thread) == [OTHER]


@contextmanager
def run_of(world: World, thread: ThreadId, **files: str) -> Iterator[None]:
    """Write *files* into the run directory of the thread's next step, and hold its lock."""
    run_dir = Path(world.store.local_path("run", thread, get_head(world.store, thread).commit))
    run_dir.mkdir(parents=True)
    for name, content in files.items():
        (run_dir / name).write_text(content)
    with open(f"{run_dir}.alive", "w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        yield


def test_running_agent_is_reported_with_a_kill_command(world: World) -> None:
    at = begin(world, f"{BEGUN}{HANG}")
    at.lose_engine()
    group = os.getpgid(pids(world)[0])

    with refuses("agent-left-running", match=f"process group {group}") as caught:
        check_nothing_runs(world.store, world.snapshot(at.thread))
    os.killpg(group, signal.SIGKILL)

    assert caught.value.exit_status == 4
    assert f"`kill -- -{group}` ends it" in (caught.value.hint or "")


def test_agent_that_cannot_be_seen_is_not_passed(world: World) -> None:
    thread = world.begun()

    with run_of(world, thread), refuses("agent-left-running", match="cannot be seen") as caught:
        world.kill(thread)

    assert "kill --" not in (caught.value.hint or "")
    assert world.snapshot(thread).record.status == "ready"


@pytest.mark.skipif(not os.path.exists("/proc/self/fdinfo"), reason="there is no /proc here")
def test_daemon_of_a_killed_agent_does_not_block(world: World) -> None:
    thread = world.begun()

    # This process is the daemon: it holds the lock, and no group 4194304 can exist.
    with run_of(world, thread, pid="4194304\n"):
        world.kill(thread)

    assert world.snapshot(thread).record.status == "killed"


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
