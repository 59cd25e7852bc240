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


def test_fork_from_a_role_is_its_turn_again(uwf: Uwf) -> None:
    thread = uwf.begun()
    for _ in range(2):
        uwf.json("thread", "step", thread)

    forked = uwf.json("thread", "fork", thread, "--from-role", "checker")

    assert forked["depth"] == 1
    assert uwf.json("thread", "step", forked["thread"])["role"] == "checker"


def test_fork_begins_at_one_place(uwf: Uwf) -> None:
    ran = uwf("thread", "fork", uwf.begun(), "--at", "0", "--from-role", "writer")

    assert (ran.status, ran.out) == (2, "")
    assert "--at and --from-role both say where the fork begins" in ran.err
