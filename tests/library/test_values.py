from collections.abc import Callable

from commands.world import DEMO

from uwf_git import TaskHandle, TaskRun, TaskRuntime, TaskStep, TaskWaiting


def test_step_has_its_role_and_the_status(task: TaskHandle) -> None:
    step = task.step()

    assert step == TaskStep(
        task_id=task.task_id,
        status="ready",
        role="writer",
        next="checker",
        head=task.query().head,
        depth=1,
        said='{"text": "Do it. (1)"}',
    )


def test_run_has_the_reason_why_it_stopped(task: TaskHandle) -> None:
    steps: list[TaskStep] = []
    run = task.run(on_step=steps.append)

    assert run == TaskRun(
        task_id=task.task_id,
        status="completed",
        stopped="end",
        steps=4,
        last=steps[-1],
        waiting=None,
        failure=None,
    )
    assert [step.role for step in steps] == ["writer", "checker", "writer", "checker", None]


def test_run_that_a_person_stops_has_the_role(runtime: TaskRuntime) -> None:
    run = runtime.start(DEMO, "Do it.", agents={"checker": "human"}).run()

    assert (run.stopped, run.steps) == ("waiting", 1)
    assert run.waiting == TaskWaiting(role="checker", until=None)


def test_run_that_an_agent_stops_has_the_failure(
    runtime: TaskRuntime, program: Callable[..., str]
) -> None:
    run = runtime.start(DEMO, "Do it.", agents={"writer": program("echo no >&2; exit 7")}).run()

    assert (run.stopped, run.status, run.steps) == ("failed", "failed", 0)
    assert run.failure is not None
    assert run.failure.message == "writer failed (agent): exit status 7: no"
