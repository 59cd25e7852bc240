import os
from pathlib import Path

import pytest
from cli.program import Uwf

from uwf_git.agents.run_files import find_last_output_ms
from uwf_git.cli.output.screen import tell_silence
from uwf_git.commands.fleet.claims import Claim, Hub
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.local_files import lock_thread


def test_row_is_a_document(uwf: Uwf) -> None:
    thread = uwf.begun()
    with lock_thread(open_store(str(uwf.session.repo)), ThreadId(thread), since_ms=0) as lock:
        lock.say("writer", "uwf-claude")
        (row,) = uwf.json("ps")

    assert list(row) == [
        "thread", "status", "workflow", "workflowName", "role", "agent", "pid", "group", "since",
        "elapsedMs", "driven", "lastOutput",
    ]  # fmt: skip
    assert (row["thread"], row["status"], row["role"]) == (thread, "running", "writer")
    assert row["elapsedMs"] > 1_700_000_000_000


def test_screen_shows_the_last_logged_line_and_no_pid_unless_asked(uwf: Uwf) -> None:
    thread = uwf.begun()
    store = open_store(str(uwf.session.repo))
    screen = {"stdout_is_tty": True, "environ": {**uwf.session.environ, "COLUMNS": "60"}}
    with lock_thread(store, ThreadId(thread), since_ms=uwf.session.now_ms()) as lock:
        lock.say("writer", "uwf-claude")
        brief = uwf("ps", "--format", "text", **screen).out
        at_length = uwf("ps", "--format", "text", "--long", **screen).out

    assert brief.split("\n")[0].split() == ["THREAD", "WORKFLOW", "ROLE", "AGENT", "FOR"]
    assert brief.split("\n")[1].startswith(f"●  {thread[:10]}  demo")
    assert "GROUP" in at_length


def test_claims_are_not_cut_if_asked(uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = {uwf.begun(): Claim(Oid("0" * 40), {"host": "far", "role": "r" * 60})}
    monkeypatch.setattr(Hub, "read_claims", lambda _hub: claims)
    uwf("remote", "add", "origin", str(uwf.place / "hub.git"))
    screen = {"stdout_is_tty": True, "environ": {**uwf.session.environ, "COLUMNS": "60"}}
    words = ("ps", "--remote", "--format", "text")

    assert "r" * 60 not in uwf(*words, **screen).out
    assert "r" * 60 in uwf(*words, "--wide", **screen).out


@pytest.mark.parametrize(
    ("last_ms", "told"),
    [(None, ""), (1_000_000, ""), (941_000, ""), (940_000, "silent for 1 min")],
)
def test_silence_is_told_once_it_is_a_minute_long(last_ms: int | None, told: str) -> None:
    assert tell_silence(last_ms, 1_000_000) == told


def test_last_output_is_that_of_the_newest_file_or_the_start(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text("7\n")
    (tmp_path / "stdout").write_text("")
    os.utime(tmp_path / "pid", (1_000, 1_000))
    assert find_last_output_ms(str(tmp_path)) == 1_000_000
    (tmp_path / "stderr").write_text("working\n")
    os.utime(tmp_path / "stderr", (1_060, 1_060))
    assert find_last_output_ms(str(tmp_path)) == 1_060_000
