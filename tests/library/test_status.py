import pytest
from commands.world import DEMO

from uwf_git import TaskHandle, TaskRuntime, TaskWaiting


def test_new_task_is_ready_without_steps(task: TaskHandle) -> None:
    status = task.query()

    assert (status.task_id, status.workflow_name, status.status) == (task.task_id, "demo", "ready")
    assert (status.current_node, status.current_iteration, status.depth) == ("writer", 1, 0)
    assert (status.last_node, status.next, status.task_status) == (None, "writer", "pending")
    assert (status.end_time, status.error, status.waiting) == (None, None, None)
    assert (status.prompt, status.state, status.usage) == ("Do it.", {}, {})
    assert status.start_time <= status.last_update_time


def test_ended_task_says_when(task: TaskHandle) -> None:
    task.run()

    status = task.query()
    assert (status.status, status.current_node, status.current_iteration) == (
        "completed",
        None,
        None,
    )
    assert (status.last_node, status.next, status.task_status) == ("checker", None, "completed")
    assert (status.end_time, status.depth) == (status.last_update_time, 4)


def test_status_of_a_moment_does_not_change(task: TaskHandle) -> None:
    before = task.query()
    task.step()

    assert before.status == "ready"
    assert before.depth == 0
    with pytest.raises(AttributeError):
        before.depth = 1  # type: ignore[misc]  # that is what is tried
    with pytest.raises(TypeError):
        before.document["depth"] = 1  # type: ignore[index]  # that is what is tried


def test_task_that_waits_says_for_whom(runtime: TaskRuntime) -> None:
    task = runtime.start(DEMO, "Do it.", agents={"writer": "human"})
    step = task.step()

    status = task.query()
    assert (step.status, status.status) == ("waiting", "waiting")
    assert status.waiting == TaskWaiting(role="writer", until=None)
    assert (status.current_node, status.last_node, step.next) == ("writer", None, "writer")
    assert status.document["question"]["role"] == "writer"
