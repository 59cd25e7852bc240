from collections.abc import Callable
from pathlib import Path

from cli.program import Uwf


def test_kill_prints_the_thread_as_it_ended(uwf: Uwf, git: Callable[..., str]) -> None:
    thread = uwf.begun()
    head = uwf.json("thread", "step", thread)["head"]

    killed = uwf.json("thread", "kill", thread, "-m", "it was closed")

    assert (killed["thread"], killed["head"], killed["status"]) == (thread, head, "killed")
    assert list(killed) == ["workflow", "thread", "head", "status"]
    store = Path(str(uwf.session.repo))
    log = git("log", "-1", "--format=%B", f"refs/archive/{thread}", cwd=store)
    assert "\n    it was closed\n" in log
