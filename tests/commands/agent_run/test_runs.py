"""A thread is not ended while an orphaned agent works."""

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands.agent_run.test_play_agent import kill_engine, slow
from commands.at_work import BEGUN, HANG, begin, pids, wait_for, wait_until
from commands.turns import begin_turn, count_reads
from commands.world import World
from refusing import refuses

from uwf_git.commands.agent_run.runs import (
    PlayedElsewhere,
    ReportedUsage,
    Running,
    check_nothing_runs,
    find_running,
    forget_run,
    is_any_at_work,
    is_at_work,
    list_finished_runs,
    list_running,
    read_step_dir,
    running_rows,
    stop_agents,
)
from uwf_git.commands.family import Family
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.logs import find_run_dir
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.local_files import (
    ThreadBusy,
    get_run_dir,
    list_possibly_active,
    lock_drive,
    lock_thread,
    may_be_active,
)

__all__ = ["slow"]

OTHER = Oid("5" * 40)


def test_finished_run_of_another_commit_is_not_forgotten(world: World, thread: ThreadId) -> None:
    commit = begin_turn(world, thread)
    other = Path(get_run_dir(world.store, thread, OTHER).path)
    other.mkdir()

    (other / "exit").write_text("0\n")
    forget_run(world.store, thread, commit)

    assert list_finished_runs(world.store, thread) == [OTHER]


@contextmanager
def run_of(
    world: World, thread: ThreadId, lock: int = fcntl.LOCK_EX, **files: str
) -> Iterator[None]:
    """Write *files* into the run directory of the thread's next step, and hold its lock."""
    run_dir = Path(world.store.local_path("run", thread, get_head(world.store, thread).commit))
    run_dir.mkdir(parents=True)
    for name, content in files.items():
        (run_dir / name).write_text(content)
    with open(f"{run_dir}.alive", "w") as alive:
        fcntl.flock(alive, lock)
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


def test_agent_that_cannot_be_seen_is_not_passed(world: World, thread: ThreadId) -> None:
    with run_of(world, thread), refuses("agent-left-running", match="cannot be seen") as caught:
        world.kill(thread)

    assert "kill --" not in (caught.value.hint or "")
    assert world.snapshot(thread).record.status == "ready"


def test_agent_that_cannot_be_seen_is_at_work_and_a_pause_does_not_say_that_it_ended(
    world: World, thread: ThreadId
) -> None:
    with run_of(world, thread, pid="1\n"):
        assert [row["thread"] for row in running_rows(world.store, now_ms=0)] == [thread]
        assert is_at_work(world.store, thread)
        with refuses("agent-left-running", match="cannot be seen"):
            world.pause(thread, now=True)
        assert world.snapshot(thread).record.status == "paused"

    assert not is_at_work(world.store, thread)


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ({"pid": 2**80, "role": "a"}, ThreadBusy),
        ({"host": "elsewhere"}, ThreadBusy),
        ({"host": "elsewhere", "pid": 1, "role": "a"}, PlayedElsewhere),
    ],
)
def test_lock_of_one_who_is_not_here_is_busy(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    thread: ThreadId,
    written: dict[str, object],
    error: type[Exception],
) -> None:
    monkeypatch.setattr("uwf_git.commands.agent_run.runs._PATIENCE_S", -60)

    with lock_thread(world.store, thread, since_ms=0):
        lock = Path(world.store.local_path("locks", thread))
        lock.write_text(json.dumps({"host": os.uname().nodename, **written}))
        with refuses(ThreadBusy) as caught:
            stop_agents(world.store, thread, reason="x")
        assert type(caught.value) is error


def test_one_who_looks_at_a_dead_run_is_no_agent_to_another(world: World, thread: ThreadId) -> None:
    with run_of(world, thread, fcntl.LOCK_SH, pid="1\n"):
        assert not is_at_work(world.store, thread)
        world.kill(thread)

    assert world.snapshot(thread).record.status == "killed"


@pytest.mark.skipif(not os.path.exists("/proc/self/fdinfo"), reason="there is no /proc here")
def test_daemon_of_a_killed_agent_does_not_block(world: World, thread: ThreadId) -> None:
    # This process is the daemon: it holds the lock, and no group 4194304 can exist.
    with run_of(world, thread, pid="4194304\n"):
        world.kill(thread)

    assert world.snapshot(thread).record.status == "killed"


MIB = 1024 * 1024


@pytest.mark.parametrize("space", [" ", "\n"])
def test_prompt_is_cut_where_a_word_ends(tmp_path: Path, space: str) -> None:
    (tmp_path / "prompt.md").write_text("x" * (MIB - 10) + space + "my-own-secret-1")

    assert read_step_dir(str(tmp_path)).prompt == "x" * (MIB - 10) + "\n[… 16 bytes left out …]\n"


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


def test_nothing_is_read_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "prompt.md").write_text("secret")
    (tmp_path / "link").symlink_to("mine")

    assert read_step_dir(str(tmp_path / "link")) == StepFiles()


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

        # Of a run that is over all counts, also behind much else and without an end.
        trace.write(b'{"n": 12345}\n' * 200_000 + b'{"type": "turn", "usage": {"inputTokens": 4}}')
        assert reported.read()["inputTokens"] == 5
        assert reported.read(is_over=True)["inputTokens"] == 9
        os.truncate(tmp_path / "trace.jsonl", 15 * 2**40)
        assert reported.read(is_over=True)["inputTokens"] == 9


def test_step_driver_and_run_leave_some(world: World) -> None:
    stepped, driven, left = (world.begun() for _ in range(3))
    Path(world.store.local_path("run", left)).mkdir(parents=True)
    with lock_thread(world.store, stepped, since_ms=1), lock_drive(world.store, driven, since_ms=1):
        assert list_possibly_active(world.store) == [left, driven, stepped]
        assert all(may_be_active(world.store, each) for each in (left, driven, stepped))
        assert is_any_at_work(world.store, Family(world.store, stepped))
    assert list_possibly_active(world.store) == [left]


# Running threads: processes are named while they work, and no others.

NEVER_MS = 10**15


def begin_running(world: World, thread: ThreadId) -> subprocess.Popen[bytes]:
    """Begin a step in another process, and wait until its agent is at work."""
    engine = world.process("thread", "step", thread)
    wait_for(world.place / "ran")
    return engine


def statuses(world: World, *wanted: str) -> list[str]:
    return [
        row["status"]
        for row in list_thread_rows(world.store, ListRequest(statuses=frozenset(wanted)))
    ]


def test_step_is_named_with_its_role_agent_engine_and_group(world: World, slow: ThreadId) -> None:
    with begin_running(world, slow) as engine:
        running = find_running(world.store, slow)
        rows = running_rows(world.store, now_ms=NEVER_MS)
        shown = statuses(world)
        group = os.getpgid(int((world.place / "ran").read_text()))
        (world.place / "go").touch()
        engine.communicate()

    assert running is not None
    since = running.since
    assert since is not None
    known = Running(slow, "writer", "agent", engine.pid, group, since, is_driven=False)
    assert running._replace(last_output=None) == known
    assert running.last_output is not None
    assert running.last_output >= since
    assert rows == [
        {
            "thread": slow,
            "status": "running",
            "workflow": world.snapshot(slow).record.workflow,
            "workflowName": "demo",
            "role": "writer",
            "agent": "agent",
            "pid": engine.pid,
            "group": group,
            "since": since,
            "elapsedMs": NEVER_MS - since,
            "driven": False,
            "lastOutput": running.last_output,
        }
    ]
    assert shown == ["running"]
    assert find_running(world.store, slow) is None


def test_pain_19_foreground_run_shows_as_running_between_its_steps(world: World) -> None:
    """A marker that only background runs had let others step in between."""
    thread = world.begun()
    with lock_drive(world.store, thread, since_ms=3):
        for _ in range(2):
            running = find_running(world.store, thread)
            assert running == Running(thread, None, None, os.getpid(), None, 3, is_driven=True)
            assert list_running(world.store) == [running]
            assert statuses(world, "running") == ["running"]
            assert statuses(world, "ready") == []
            with pytest.raises(ThreadBusy):
                world.step(thread)
    assert find_running(world.store, thread) is None
    assert world.step(thread).depth == 1


def test_pain_20_reused_group_is_not_running(world: World, slow: ThreadId) -> None:
    kill_engine(begin_running(world, slow))
    run = find_run_dir(world.store, slow)
    assert run is not None
    os.killpg(int(Path(run.path, "pid").read_text()), signal.SIGKILL)
    wait_until(lambda: find_running(world.store, slow) is None, "its agent never ended")

    # Somebody else's group now, and it lives.
    Path(run.path, "pid").write_text(f"{os.getpgrp()}\n")

    assert find_running(world.store, slow) is None
    assert statuses(world) == ["ready"]


def test_pain_20_agent_whose_engine_was_killed_is_running_without_an_engine(
    world: World, slow: ThreadId
) -> None:
    kill_engine(begin_running(world, slow))

    (running,) = list_running(world.store)
    shown = statuses(world)

    assert (running.thread, running.pid, running.role, running.agent, running.is_driven) == (
        slow, None, "writer", "agent", False
    )  # fmt: skip
    assert running.group is not None
    os.killpg(running.group, 0)
    assert running.since is not None
    assert shown == ["running"]
    (world.place / "go").touch()
    wait_until(lambda: list_running(world.store) == [], "its agent never ended")
    assert statuses(world) == ["ready"]


def test_values_of_another_kind_in_a_held_lock_do_no_harm(world: World, thread: ThreadId) -> None:
    with lock_thread(world.store, thread, since_ms=1):
        path = Path(world.store.local_path("locks", thread))
        path.write_text('{"pid": "x", "since": "y", "role": 7, "agent": [1]}')
        running = find_running(world.store, thread)

    assert running == Running(thread, "7", "[1]", None, None, None, is_driven=False)


def test_damaged_thread_at_work_is_a_row_all_the_same(world: World, thread: ThreadId) -> None:
    with lock_thread(world.store, thread, since_ms=1) as lock:
        lock.say("writer", "agent")
        Path(world.store.local_path("run", thread)).mkdir(parents=True)
        Path(world.store.path, "refs", "threads", thread).write_text("garbage\n")
        (row,) = running_rows(world.store, now_ms=0)

    assert (row["thread"], row["role"], row["workflowName"]) == (thread, "writer", None)
    assert row["elapsedMs"] == 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
def test_what_an_agent_left_is_a_row_until_it_ends(world: World, tmp_path: Path) -> None:
    thread, other = world.begun(), world.begun()
    told = {"UWF_REPO": world.store.path, "UWF_THREAD_ID": thread, "UWF_ROLE": "writer"}
    environs = [
        {**told, "UWF_STEP_DIR": str(tmp_path / "gone")},
        # Its turn goes on; another store's.
        {**told, "UWF_STEP_DIR": str(tmp_path)},
        {**told, "UWF_STEP_DIR": str(tmp_path / "gone"), "UWF_REPO": "/elsewhere"},
    ]
    left = [subprocess.Popen(["/bin/sleep", "60"], env=environ) for environ in environs]
    try:
        (row,) = running_rows(world.store, now_ms=0, root=thread)
        assert running_rows(world.store, now_ms=0, root=other) == []
    finally:
        for each in left:
            each.kill()
            each.wait()

    assert (row["thread"], row["status"], row["role"]) == (thread, "left", "writer")
    assert (row["agent"], row["pid"]) == ("sleep", left[0].pid)
    assert running_rows(world.store, now_ms=0) == []


def test_only_threads_with_traces_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        world.step(world.begun())
    at_work = world.begun()
    counted = count_reads(monkeypatch)
    with lock_thread(world.store, at_work, since_ms=1):
        rows = running_rows(world.store, now_ms=1)
    monkeypatch.undo()

    assert [row["thread"] for row in rows] == [at_work]
    # Its tip, and nothing of the others.
    assert counted.objects == [world.tip(at_work).encode()]
