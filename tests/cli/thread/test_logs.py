import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli.program import Uwf

from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.lock import lock_drive


def logged(uwf: Uwf, thread: str, text: str) -> None:
    path = Path(f"{uwf.session.repo}/uwf/logs/{thread}.log")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_lines_come_on_standard_output_and_whose_they_are_on_standard_error(uwf: Uwf) -> None:
    thread = uwf.begun()
    logged(uwf, thread, "one\ntwo\nthree\n")

    ran = uwf("thread", "logs", thread)

    assert (ran.status, ran.out, ran.err) == (0, "one\ntwo\nthree\n", "-- background driver\n")
    assert uwf("thread", "logs", thread, "-n", "2").out == "two\nthree\n"
    assert uwf("thread", "logs", thread, "--last", "0").out == ""
    assert uwf("thread", "logs", thread, "--last", "-1").status == 2


def test_nothing_logged_is_no_error_and_is_reported(uwf: Uwf) -> None:
    ran = uwf("thread", "logs", uwf.begun())

    assert (ran.status, ran.out, ran.err) == (0, "", "note: nothing is logged\n")


def test_agent_that_failed_is_heard_again(uwf: Uwf) -> None:
    thread = uwf.begun(uwf.agent("echo no key >&2; exit 1"))
    assert uwf("thread", "step", thread).status == 3

    ran = uwf("thread", "logs", thread)

    assert (ran.status, ran.out) == (0, "no key\n")
    assert ran.err == "-- writer, attempt 1, failed\n"


def test_no_terminal_obeys_what_is_logged(uwf: Uwf) -> None:
    thread = uwf.begun()
    logged(uwf, thread, "\x1b[1;31mred\x1b[0m\t\\t\x1b]0;x\x07\u202e\n10%\r20%\r")

    told = uwf("thread", "logs", thread).out

    assert told == "red\t\\t\\x1b]0;x\\x07\\u202e\n10%\n20%\n"


def test_keys_of_the_callers_environment_are_masked(uwf: Uwf) -> None:
    thread = uwf.begun()
    logged(uwf, thread, "curl -H correct-horse-battery-1 ghp_0123456789abcdefABCDEF0123\n")
    environ = {**uwf.session.environ, "MY_API_KEY": "correct-horse-battery-1"}

    told = uwf("thread", "logs", thread, environ=environ).out

    assert told == "curl -H [masked] [masked]\n"


def test_follow_ends_when_no_process_is_at_work_and_says_so(uwf: Uwf) -> None:
    thread = uwf.begun()
    uwf.json("thread", "kill", thread)
    logged(uwf, thread, "half")

    ran = uwf("thread", "logs", "-f", thread)

    assert (ran.status, ran.out) == (0, "half\n")
    assert ran.err.endswith("note: no process works on the thread; it is killed\n")


def test_ctrl_c_ends_following_quietly(uwf: Uwf) -> None:
    thread = uwf.begun()
    logged(uwf, thread, "one\n")
    store = open_store(str(uwf.session.repo))
    with (
        lock_drive(store, ThreadId(thread), since_ms=1),
        subprocess.Popen(
            [sys.executable, "-m", "uwf_git", "thread", "logs", "-f", thread],
            env={**os.environ, "UWF_REPO": str(uwf.session.repo)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert (process.returncode, out, err) == (130, b"", b"-- background driver\n")


@pytest.mark.parametrize("format_", ["json", "yaml", "text"])
def test_lines_are_lines_in_every_format(uwf: Uwf, format_: str) -> None:
    thread = uwf.begun()
    logged(uwf, thread, "one\n")

    assert uwf("thread", "logs", thread, "--format", format_).out == "one\n"
