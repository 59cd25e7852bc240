"""The verbs of a task; the tests of commands hold their rules."""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from commands.world import DEMO
from library.test_runtime import SPLITS
from refusing import raising, refuses

from uwf_git import AgentContext, AgentFailed, BadUsage, Conflict, Refused, TaskHandle, TaskRuntime
from uwf_git.store.store import open_store


@pytest.fixture
def failed(runtime: TaskRuntime) -> TaskHandle:
    """Return a task whose writer has failed."""
    task = runtime.start(DEMO, "Do it.")
    with pytest.raises(AgentFailed):
        task.step(agent="writer=false")
    return task


def test_a_command_that_is_not_trusted_here_runs_only_when_told(runtime: TaskRuntime) -> None:
    runtime = TaskRuntime(runtime.path)
    task = runtime.start(DEMO, "Do it.", agents="false")
    trusted = open_store(runtime.path, environ=dict(os.environ)).trust_file
    assert trusted is not None
    Path(trusted).unlink()
    for take in (task.step, task.run):
        with refuses("agent-not-trusted"):
            take()
    with pytest.raises(AgentFailed):
        task.step(trust=True)


def test_step_and_run_go_on_where_the_task_is(task: TaskHandle) -> None:
    assert task.step().role == "writer"
    assert task.run(max_steps=1).last.role == "checker"
    run = task.run(until="writer")
    assert (run.stopped, run.steps) == ("until", 1)
    assert task.run().stopped == "end"
    for again in (task.step, task.run):
        with pytest.raises(Refused, match="is not active"):
            again()


def test_callback_that_raises_ends_the_run_and_loses_nothing(task: TaskHandle) -> None:
    with pytest.raises(LookupError, match="of the caller"):
        task.run(on_step=raising(LookupError("of the caller")))

    assert task.query().depth == 1
    assert task.run().stopped == "end"


def test_agent_of_one_step_plays_that_step_only(
    task: TaskHandle, program: Callable[..., str]
) -> None:
    agent = program("""echo '{"meta": {"text": "by a program"}}'""")

    task.step(agent={"writer": {"command": agent, "timeout": 30}})

    document = task.query().document
    assert document["step"]["meta"] == {"text": "by a program"}
    assert document["agents"]["writer"] == "python:writer"


def test_failed_task_is_retried_with_the_hint(failed: TaskHandle) -> None:
    failed.retry("look into the log")

    assert failed.query().document["hint"] == "look into the log"
    assert failed.run().stopped == "end"
    with pytest.raises(Refused, match="is not active"):
        failed.retry()


def test_task_at_rest_is_patched_paused_resumed_and_cancelled(task: TaskHandle) -> None:
    assert task.wait().status == "ready"
    task.update_state({"a": 1, "b": {"c": 2}}, "to begin with")
    task.update_state({"a": None, "b": {"d": 3}})
    assert task.state == {"b": {"c": 2, "d": 3}}
    with pytest.raises(BadUsage, match="the patch is empty"):
        task.update_state({})
    task.pause("to be read")
    assert (task.status, task.query().document["reason"]) == ("paused", "to be read")
    assert (task.run().stopped, task.run().steps) == ("paused", 0)
    with pytest.raises(Refused, match="is paused already"):
        task.pause()
    task.resume("it was read")
    task.step()
    task.cancel("nobody wants it")

    status = task.wait(0)
    assert (status.status, status.depth) == ("killed", 1)
    assert status.end_time is not None
    assert status.document["reason"] == "nobody wants it"
    with pytest.raises(Refused, match="was archived as killed"):
        task.cancel()


def test_stream_yields_each_step_before_the_next_is_begun(task: TaskHandle) -> None:
    seen = [(step.role, step.depth, task.query().depth) for step in task.stream(until="checker")]

    assert seen == [("writer", 1, 1), ("checker", 2, 2)]
    assert [step.role for step in task.stream()] == ["writer", "checker", None]


def test_stream_plays_no_branch_before_the_step_before_was_taken(store: str) -> None:
    seen: list[tuple[str, str]] = []

    def play(context: AgentContext) -> dict[str, str]:
        seen.append((context.thread_id, context.current_role.name))
        return {}

    task = TaskRuntime(store, players={"one": play, "two": play}).start(SPLITS)
    seen.extend((step.task_id, step.status) for step in task.stream())

    # All branches are offered each step; which one takes it is chance.
    plays = [(thread, after) for (thread, said), after in pairwise(seen) if said in {"one", "two"}]
    assert all(after == (thread, "ready") for thread, after in plays)
    told = {thread: [said for each, said in seen if each == thread] for thread, _ in seen}
    assert told.pop(task.task_id) == ["split", "ready", "completed"]
    assert sorted(told.values()) == [[role, "ready", "completed"] for role in ("one", "two")]
    assert [seen[place][0] for place in (0, -2, -1)] == [task.task_id] * 3


def test_player_that_waits_for_its_own_task_is_refused(store: str) -> None:
    def wait(context: AgentContext) -> dict[str, str]:
        runtime.task(context.thread_id).wait(20)
        return {}

    runtime = TaskRuntime(store, players={"writer": wait})
    with pytest.raises(AgentFailed, match="waits for the agent that runs this command"):
        runtime.start(DEMO, "Do it.").step()


@pytest.mark.parametrize("reason", ["", " \n\t"])
def test_interrupt_without_a_reason_is_recorded_as_a_plain_pause(
    task: TaskHandle, reason: str
) -> None:
    task.interrupt(reason)

    document = task.query().document
    assert (task.status, document["said"], "reason" in document) == (
        "paused", "pause: paused", False,
    )  # fmt: skip
    *_, event = task.events()
    assert event.document["reason"] is None


def test_person_answers_in_the_place_of_an_agent(runtime: TaskRuntime) -> None:
    task = runtime.start(DEMO, "Do it.", agents={"writer": "human"})
    task.run()
    with pytest.raises(Refused, match="this is no answer of writer"):
        task.answer({"text": 5})
    step = task.answer(
        {"text": "by hand"}, content="Written.", state={"by": "hand"}, note="after lunch"
    )

    assert (step.role, step.depth, step.status) == ("writer", 1, "ready")
    status = task.query()
    assert status.document["step"]["content"] == "Written."
    assert status.state == {"by": "hand"}
    with pytest.raises(Refused, match="waits for no person"):
        task.answer({"ok": True})


def test_rules_are_amended_for_the_rest_of_the_task(
    runtime: TaskRuntime, task: TaskHandle, program: Callable[..., str]
) -> None:
    agent = program("""echo '{"meta": {"ok": true}}'""")
    changed = DEMO.replace("Writes.", "Writes well.")
    task.step()
    task.amend(
        workflow=changed, agents={"checker": agent}, limits={"max_steps": 9}, reason="better"
    )

    status = task.query()
    assert status.workflow == runtime.put(changed).workflow
    assert status.document["agents"]["checker"] == agent
    assert status.document["limits"] == {"maxSteps": 9}
    assert task.run().steps == 1
    with pytest.raises(BadUsage, match="there is nothing to change"):
        runtime.start("demo", "Do it.").amend()


def test_fork_goes_on_from_a_step_and_leaves_the_task_as_it_is(task: TaskHandle) -> None:
    task.run(max_steps=3)
    fork = task.fork(at="1", reason="another way")
    again = task.fork(from_role="checker")

    assert [each.query().depth for each in (task, fork, again, task.fork())] == [3, 1, 1, 3]
    assert fork.run().steps == 3
    assert task.query().depth == 3
    with pytest.raises(Refused):
        task.fork(at="9")


def test_errors_are_of_the_package_and_say_what_to_do(task: TaskHandle) -> None:
    with pytest.raises(Refused) as caught:
        task.resume()

    error = caught.value
    assert (error.code, error.exit_status) == ("wrong-status", 1)
    assert error.hint is not None
    assert not isinstance(error, Conflict)
