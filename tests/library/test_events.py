from pathlib import Path

import pytest
from commands.world import DEMO

from uwf_git import BadUsage, Refused, TaskHandle, TaskRuntime


def test_missing_event_is_refused(runtime: TaskRuntime, task: TaskHandle) -> None:
    with pytest.raises(Refused):
        list(task.events(since="0" * 40))
    with pytest.raises(BadUsage):
        list(runtime.events(since="yesterday"))


def test_damaged_task_is_left_out_of_the_events(runtime: TaskRuntime, task: TaskHandle) -> None:
    other = runtime.start(DEMO, "Do it.")
    workflow = Path(runtime.path, "refs/workflows/demo").read_text()
    Path(runtime.path, "refs/threads", task.task_id).write_text(workflow)

    assert {event.task_id for event in runtime.events()} == {other.task_id}
