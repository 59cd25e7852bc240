"""The fields of a task, and that handles of one task are alike."""

import pytest

from uwf_git import TaskHandle, TaskRuntime

FIELDS = (
    "workflow_name",
    "status",
    "current_node",
    "current_iteration",
    "last_node",
    "next",
    "state",
    "start_time",
    "last_update_time",
    "end_time",
    "error",
)


@pytest.mark.parametrize("name", FIELDS)
def test_field_looks_anew_each_time(name: str, task: TaskHandle) -> None:
    before = getattr(task, name)
    assert before == getattr(task.query(), name)
    task.run()
    assert getattr(task, name) == getattr(task.query(), name)


def test_handles_of_one_task_are_alike(runtime: TaskRuntime, task: TaskHandle) -> None:
    again = runtime.task(task.task_id)
    other = runtime.start("demo", "Do it.")

    assert (task == again, task == other, task == task.task_id) == (True, False, False)
    assert len({task, again, other}) == 2
    assert repr(task) == f"<TaskHandle {task.task_id}>"
    assert repr(runtime) == f"<TaskRuntime {runtime.path}>"
