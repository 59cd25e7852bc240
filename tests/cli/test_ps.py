from pathlib import Path

import pytest
from cli.program import Uwf

from uwf_git.cli.ps import _elapsed
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.lock import lock_drive, lock_thread


def test_nothing_runs(uwf: Uwf) -> None:
    uwf.begun()

    assert uwf.json("ps") == []
    assert uwf("ps", "--format", "text").out == ""


def test_missing_store_has_nothing_at_work(uwf: Uwf, tmp_path: Path) -> None:
    environ = {**uwf.session.environ, "HOME": str(tmp_path)}

    assert uwf.json("ps", repo=None, environ=environ, cwd=str(tmp_path)) == []


def test_row_is_a_document(uwf: Uwf) -> None:
    thread = uwf.begun()
    with lock_thread(open_store(str(uwf.session.repo)), ThreadId(thread), since_ms=0) as lock:
        lock.say("writer", "uwf-claude")
        (row,) = uwf.json("ps")

    assert list(row) == [
        "thread", "status", "workflow", "workflowName", "role", "agent", "pid", "group", "since",
        "elapsedMs", "driven",
    ]  # fmt: skip
    assert (row["thread"], row["status"], row["role"]) == (thread, "running", "writer")
    assert row["elapsedMs"] > 1_700_000_000_000


def test_table_is_for_people(uwf: Uwf) -> None:
    thread = uwf.begun()
    since_ms = uwf.session.now_ms() - 125_000
    store = open_store(str(uwf.session.repo))
    with (
        lock_drive(store, ThreadId(thread), since_ms=1),
        lock_thread(store, ThreadId(thread), since_ms=since_ms) as lock,
    ):
        lock.say("writer", "uwf-\x1bclaude")
        head, row = uwf("ps", "--format", "text").out.splitlines()

    assert head.split() == [
        "THREAD", "STATUS", "WORKFLOW", "NAME", "ROLE", "AGENT", "PID", "GROUP", "SINCE", "ELAPSED",
    ]  # fmt: skip
    assert row.startswith(f"{thread}  running  demo")
    assert "uwf-claude" in row
    assert row.split()[-1].startswith("02:")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "00:00"),
        (125, "02:05"),
        (3600, "1:00:00"),
        (86_399, "23:59:59"),
        (86_400, "1-00:00:00"),
        (90_061, "1-01:01:01"),
    ],
)
def test_time_is_written_as_ps_writes_it(seconds: int, told: str) -> None:
    assert _elapsed(seconds) == told
