from collections.abc import Callable

import pytest
from commands.world import DEMO

from uwf_git import Conflict, Refused, TaskHandle, TaskRuntime

ANSWER = """echo '{"meta": {"text": "x", "ok": true}, "content": "Said."}'"""


def begin(runtime: TaskRuntime, command: str) -> TaskHandle:
    return TaskRuntime(runtime.path).start(DEMO, "Do it.", agents=command)


def test_run_stops_at_until_and_max_steps(
    runtime: TaskRuntime, program: Callable[..., str]
) -> None:
    first, second = begin(runtime, program(ANSWER)), begin(runtime, program(ANSWER))
    first.run_in_background(until="writer")
    second.run_in_background(max_steps=1, wait=True)

    assert [task.wait(60).depth for task in (first, second)] == [1, 1]


def test_functions_of_this_process_play_in_no_other(task: TaskHandle) -> None:
    with pytest.raises(Refused, match="Python functions of this process play writer, checker"):
        task.run_in_background()

    assert task.query().depth == 0


def test_running_task_is_running_and_busy_until_it_is_interrupted(
    runtime: TaskRuntime, program: Callable[..., str]
) -> None:
    task = begin(runtime, program("echo begun >&2; exec sleep 600"))
    task.run_in_background()

    with pytest.raises(Conflict, match="is still at work"):
        task.wait(0)
    with pytest.raises(Conflict, match="is busy"):
        task.step()
    assert task.status == "running"

    task.interrupt("it takes too long")
    status = task.wait(60)
    assert status.status == "paused"
    assert status.error == "it was stopped: it takes too long"
    assert status.document["lastAttempt"]["stderr"] == "begun\n"
