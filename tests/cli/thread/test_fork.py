from collections.abc import Callable
from pathlib import Path

from cli.program import Uwf


def test_fork_prints_the_new_thread_and_where_it_begins(uwf: Uwf, git: Callable[..., str]) -> None:
    thread = uwf.begun()
    head = uwf.json("thread", "step", thread)["head"]
    uwf.json("thread", "step", thread)

    forked = uwf.json("thread", "fork", thread, "--at", "1", "-m", "again")

    assert list(forked) == [
        "workflow", "thread", "head", "status", "depth", "forkedFrom", "commit",
    ]  # fmt: skip
    assert (forked["head"], forked["status"], forked["depth"]) == (head, "ready", 1)
    assert forked["forkedFrom"] == thread
    store = Path(str(uwf.session.repo))
    log = git("log", "-1", "--format=%P%n%B", f"refs/threads/{forked['thread']}", cwd=store)
    assert log.startswith(f"{forked['commit']}\nfork: from {thread} after 1 step\n")
    assert "\n    again\n" in log
    assert f"\nUwf-Forked-From: {thread}\n" in log


def test_step_that_is_not_there_is_told(uwf: Uwf) -> None:
    thread = uwf.begun()

    ran = uwf("thread", "fork", thread, "--at", "7")

    assert (ran.status, ran.out) == (1, "")
    assert f"error: thread {thread} has no step '7'" in ran.err
    assert "hint: name a step by its number or its hash" in ran.err
