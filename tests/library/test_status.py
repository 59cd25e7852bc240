from pathlib import Path
from shutil import rmtree

import pytest
from commands.counting import count_reads
from commands.world import DEMO

from uwf_git import TaskHandle, TaskRuntime
from uwf_git.store.store import NotAStore


def test_status_of_a_moment_does_not_change(task: TaskHandle) -> None:
    before = task.query()
    task.step()

    assert (before.status, before.depth, before.state) == ("ready", 0, {})
    assert (before.next, before.last_node, before.end_time) == ("writer", None, None)
    assert (before.document["depth"], before.document["status"]) == (0, "ready")
    assert before.last_update_time == before.document["lastUpdateTime"]
    assert before != task.query()
    with pytest.raises(AttributeError):
        before.depth = 1  # type: ignore[misc]  # that is what is tried
    with pytest.raises(TypeError):
        before.document["depth"] = 1  # type: ignore[index]  # that is what is tried


def test_query_reads_one_commit_and_its_state_without_a_lock(
    runtime: TaskRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [runtime.start(DEMO, "Do it.") for _ in range(3)]
    tasks[0].run()
    counted = count_reads(monkeypatch)

    for task in tasks:
        status = task.query()
        assert (status.state, status.usage, status.workflow_name) == ({}, {}, "demo")

    # A commit, its tree and its now.json; of two equal states one is read.
    assert len(tasks) < len(counted.objects) <= 3 * len(tasks)
    assert counted.locks == 0


def test_store_that_is_gone_is_said_to_be(task: TaskHandle, store: str) -> None:
    task.query()
    rmtree(Path(store))

    with pytest.raises(NotAStore):
        task.query()
