import json
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest
from commands.turns import count_reads
from commands.world import DEMO
from library.conftest import PLAYERS
from store.small_packs import make_due, packs_in, unpacked_in, write_blobs

from uwf_git import BadUsage, Refused, TaskHandle, TaskRun, TaskRuntime, TaskStep
from uwf_git.commands.admin import set_setting
from uwf_git.store.packing import MOST_PACKS
from uwf_git.store.store import NotAStore, open_store


def test_run_has_the_reason_why_it_stopped(task: TaskHandle) -> None:
    steps: list[TaskStep] = []

    assert task.run(on_step=steps.append) == TaskRun(
        task_id=task.task_id,
        status="completed",
        stopped="end",
        steps=4,
        last=steps[-1],
        waiting=None,
        failure=None,
    )
    assert [step.role for step in steps] == ["writer", "checker", "writer", "checker", None]


def test_run_that_an_agent_stops_has_the_failure(
    runtime: TaskRuntime, program: Callable[..., str]
) -> None:
    run = runtime.start(DEMO, "Do it.", agents={"writer": program("echo no >&2; exit 7")}).run()

    assert (run.stopped, run.status, run.steps) == ("failed", "failed", 0)
    assert run.failure is not None
    assert run.failure.message == "writer failed (agent): exit status 7: no"
    # As a pool of processes gives it back.
    again = pickle.loads(pickle.dumps(run)).failure
    assert (type(again), vars(again)) == (type(run.failure), vars(run.failure))


def test_listener_that_fails_fails_no_call(store: str, task: TaskHandle) -> None:
    set_setting(open_store(store, environ=os.environ), "uwf.onEvent", "/no/such/program")

    assert task.step().depth == 1


def test_store_is_packed_when_that_is_due(store: str, task: TaskHandle) -> None:
    make_due(store)
    task.query()
    assert unpacked_in(open_store(store)) > 0
    task.step()

    assert unpacked_in(open_store(store)) == 0


def test_runtime_stays_at_its_store_wherever_the_process_goes(
    runtime: TaskRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relative = TaskRuntime("store.git", cwd=tmp_path, players=PLAYERS)
    monkeypatch.chdir("/")

    assert (relative.start(DEMO, "Do it."),) == runtime.list()


def together(*works: Callable[[], object]) -> list[BaseException]:
    """Run each function in a Python thread, and return what they raised."""
    raised: list[BaseException] = []
    ready = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        ready.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (given back, to be looked at)
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_several_python_threads_run_a_task_each(runtime: TaskRuntime) -> None:
    tasks = [runtime.start(DEMO, f"{number}.") for number in range(8)]

    assert together(*(task.run for task in tasks)) == []
    assert [task.status for task in tasks] == ["completed"] * 8
    assert {task.query().depth for task in tasks} == {4}


def test_a_program_that_steps_in_a_loop_leaves_few_packs(store: str, task: TaskHandle) -> None:
    small = open_store(store)
    for _number in range(2):
        write_blobs(small, MOST_PACKS)
        task.step()
        assert len(packs_in(small)) <= MOST_PACKS


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


# The fields of a task, and that handles of one task are alike.

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
    assert getattr(task, name) == getattr(task.query(), name)
    task.run()
    assert getattr(task, name) == getattr(task.query(), name)


def test_handles_of_one_task_are_alike(runtime: TaskRuntime, task: TaskHandle) -> None:
    again = runtime.task(task.task_id)
    other = runtime.start("demo", "Do it.")

    assert (task == again, task == other, task == task.task_id) == (True, False, False)
    assert len({task, again, other}) == 2
    assert repr(task) == f"<TaskHandle {task.task_id}>"
    assert repr(runtime) == f"<TaskRuntime {runtime.path}>"


def test_documents_are_plain_json(task: TaskHandle) -> None:
    documents = [task.query().document, *(event.document for event in task.events())]

    assert json.loads(json.dumps(documents)) == documents


def test_missing_event_is_refused(runtime: TaskRuntime, task: TaskHandle) -> None:
    with pytest.raises(Refused):
        list(task.events(since="0" * 40))
    with pytest.raises(BadUsage):
        list(runtime.events(since="yesterday"))
