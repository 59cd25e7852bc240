from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Uwf


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


def test_no_terminal_obeys_what_is_logged(uwf: Uwf, thread: str) -> None:
    logged(uwf, thread, "\x1b[1;31mred\x1b[0m\t\\t\x1b]0;x\x07\u202e\n10%\r20%\r")

    assert uwf("thread", "logs", thread).out == "red\t\\t\\x1b]0;x\\x07\\u202e\n10%\n20%\n"


def test_keys_of_the_callers_environment_are_masked(uwf: Uwf, thread: str) -> None:
    logged(uwf, thread, "curl -H correct-horse-battery-1 ghp_0123456789abcdefABCDEF0123\n")
    environ = {**uwf.session.environ, "MY_API_KEY": "correct-horse-battery-1"}

    assert uwf("thread", "logs", thread, environ=environ).out == "curl -H [masked] [masked]\n"


def test_follow_ends_when_no_process_is_at_work_and_says_so(uwf: Uwf) -> None:
    thread = uwf.killed()
    logged(uwf, thread, "half")

    ran = uwf("thread", "logs", "-f", thread)

    assert (ran.status, ran.out) == (0, "half\n")
    assert ran.err.endswith("note: no process works on the thread; it is killed\n")


# `uwf thread files`, `uwf thread restore`, and the options `--files` of fork and poke.

EDIT = """\
cat > /dev/null
echo line >> log
echo '{"meta": {"text": "x", "ok": false}}'
"""


@pytest.fixture
def place(uwf: Uwf, git: Callable[..., str]) -> Path:
    place = Path(uwf.session.cwd)
    git("init", "--quiet", "--initial-branch=main", cwd=place)
    (place / "log").write_text("begun\n")
    git("add", "log", cwd=place)
    git("commit", "--quiet", "-m", "one", cwd=place)
    return place


def test_what_a_step_changed_is_shown_and_undone(uwf: Uwf, place: Path) -> None:
    thread = uwf.stepped(uwf.agent(EDIT), steps=2)

    document = uwf.json("thread", "files", thread, "2")
    assert document["changed"] == [{"path": "log", "added": 1, "removed": 0}]
    assert document["repository"] == str(place)
    assert uwf("thread", "files", thread, "--format", "text").out.startswith("1 file +2 -0")
    assert "+line" in uwf("thread", "files", thread, "2", "--patch").out

    ran = uwf("thread", "restore", thread, "1")
    assert (place / "log").read_text() == "begun\nline\n"
    undo = ran.err.partition("`")[2].partition("`")[0]
    uwf(*undo.split()[1:])
    assert (place / "log").read_text() == "begun\nline\nline\n"

    into = uwf.json("thread", "files", thread, "1", "--before", "--into", "then")["path"]
    assert Path(into, "log").read_text() == "begun\n"


def test_a_patch_that_is_redirected_can_be_applied(
    uwf: Uwf, place: Path, git: Callable[..., str]
) -> None:
    thread = uwf.stepped(uwf.agent("printf 'a\\r\\n\\033[31m\\351\\0' > bytes\n" + EDIT))
    shown = uwf("thread", "files", thread, "--patch", stdout_is_tty=True).out
    assert "Binary files /dev/null and b/bytes differ" in shown
    made = (place / "bytes").read_bytes()
    (place / "bytes").unlink()
    (place / "log").write_text("begun\n")
    (place / "patch").write_text(uwf("thread", "files", thread, "--patch").out)
    git("apply", "patch", cwd=place)
    assert (place / "bytes").read_bytes() == made
    assert (place / "log").read_text() == "begun\nline\n"


def test_a_fork_and_a_poke_take_the_files_along(uwf: Uwf, place: Path) -> None:
    thread = uwf.stepped(uwf.agent(EDIT), steps=2)
    forked = uwf.json("thread", "fork", thread, "--at", "1", "--files", "--into", "../fork")
    assert Path(forked["path"], "log").read_text() == "begun\nline\n"
    ran = uwf("thread", "poke", thread, "--files", "--no-step")
    assert (place / "log").read_text() == "begun\nline\n"
    assert f"uwf thread restore {thread} " in ran.err
    assert uwf("thread", "poke", thread, "--files", "--no-step").status == 1
    assert (place / "log").read_text() == "begun\nline\n"
