import io
import shutil
from pathlib import Path

import pytest
from cli.program import Uwf, make_hub

from uwf_git.store.git.config import set_config


def test_what_a_store_that_cannot_be_written_has_pushed_is_told(uwf: Uwf) -> None:
    uwf.begun()
    make_hub(uwf)
    locks = Path(str(uwf.session.repo), "uwf", "ref-locks")
    shutil.rmtree(locks)
    locks.touch()

    pushed = uwf("push", "--format", "text")

    assert (pushed.status, pushed.out.count("created")) == (0, 2)
    assert pushed.err.startswith("origin: warning: what it has now could not be noted here")


def make_project(uwf: Uwf) -> str:
    """Give the store a work tree and an empty hub, and begin a thread."""
    thread = uwf.begun()
    set_config(f"{uwf.session.repo}/config", "core.bare", "false")
    make_hub(uwf)
    return thread


SENT = "1 thread and 1 workflow, with all prompts and answers, to "


@pytest.mark.parametrize(("answer", "is_pushed"), [("y\n", True), ("n\n", False), ("", False)])
def test_first_push_of_a_project_asks_at_a_terminal(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch, answer: str, *, is_pushed: bool
) -> None:
    make_project(uwf)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    ran = uwf("push", "--format", "text", stdin_is_tty=True, stderr_is_tty=True)
    assert SENT in ran.err
    assert "[y/N] " in ran.err
    assert ran.out.count("created") == (2 if is_pushed else 0)
    assert (ran.status == 0) is is_pushed
    if not is_pushed:
        assert "error: nothing was pushed" in ran.err
        assert uwf("push").status == 2
