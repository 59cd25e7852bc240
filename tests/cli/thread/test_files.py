"""`uwf thread files`, `uwf thread restore`, and the options `--files` of fork and poke."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Uwf

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
    thread = uwf.begun(uwf.agent(EDIT))
    for _ in range(2):
        uwf.json("thread", "step", thread)

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
    thread = uwf.begun(uwf.agent("printf 'a\\r\\n\\033[31m\\351\\0' > bytes\n" + EDIT))
    uwf.json("thread", "step", thread)
    shown = uwf("thread", "files", thread, "--patch", stdout_is_tty=True).out
    assert "Binary files /dev/null and b/bytes differ" in shown
    made = (place / "bytes").read_bytes()
    (place / "bytes").unlink()
    (place / "log").write_text("begun\n")
    patch = uwf("thread", "files", thread, "--patch").out
    (place / "patch").write_text(patch)
    git("apply", "patch", cwd=place)
    assert (place / "bytes").read_bytes() == made
    assert (place / "log").read_text() == "begun\nline\n"


def test_a_fork_and_a_poke_take_the_files_along(uwf: Uwf, place: Path) -> None:
    thread = uwf.begun(uwf.agent(EDIT))
    for _ in range(2):
        uwf.json("thread", "step", thread)
    forked = uwf.json("thread", "fork", thread, "--at", "1", "--files", "--into", "../fork")
    assert Path(forked["path"], "log").read_text() == "begun\nline\n"
    ran = uwf("thread", "poke", thread, "--files", "--no-step")
    assert (place / "log").read_text() == "begun\nline\n"
    assert f"uwf thread restore {thread} " in ran.err
    assert uwf("thread", "poke", thread, "--files", "--no-step").status == 1
    assert (place / "log").read_text() == "begun\nline\n"


def test_options_that_exclude_each_other_are_refused(uwf: Uwf) -> None:
    assert "--files" in uwf("thread", "fork", "X", "--into", "a").err
    assert "--patch" in uwf("thread", "files", "X", "--patch", "--into", "a").err
    assert "--before is for --into" in uwf("thread", "files", "X", "--before").err
