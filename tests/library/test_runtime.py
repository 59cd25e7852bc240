import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Event, Timer

import pytest
from commands.world import DEMO
from library.conftest import PLAYERS

from uwf_git import (
    BadUsage,
    Refused,
    StoreDamaged,
    TaskFilter,
    TaskHandle,
    TaskRuntime,
    TaskStep,
    UwfError,
)
from uwf_git.commands.inspect.list import ListRequest
from uwf_git.debug_log import switch_off
from uwf_git.library.runtime import build_list_request
from uwf_git.store.store import open_store

ADDED = "moderator:\n  - {from: writer, to: checker, when: 'true'}\n"
SPLITS = """\
name: splits
root: {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
"""


def test_named_store_is_used_and_never_made_by_accident(store: str, tmp_path: Path) -> None:
    assert TaskRuntime(store).path == store
    assert TaskRuntime("store.git", cwd=tmp_path).path == store
    with pytest.raises(Refused, match="does not exist"):
        TaskRuntime(tmp_path / "none.git")
    assert not (tmp_path / "none.git").exists()


def test_folder_with_other_files_is_no_place_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()

    with pytest.raises(Refused, match="is not empty"):
        TaskRuntime(tmp_path, create=True)


def test_task_is_found_by_the_beginning_of_its_id(runtime: TaskRuntime, task: TaskHandle) -> None:
    assert runtime.task(task.task_id[:14].lower()) == task
    assert {runtime.task(task.task_id), task} == {task}
    with pytest.raises(Refused, match="there is no thread 01J00"):
        runtime.task("01J00")
    with pytest.raises(BadUsage, match="is not a thread id"):
        runtime.query("no id")


def test_list_selects_tasks_newest_first(runtime: TaskRuntime) -> None:
    first, second, third = (runtime.start(DEMO, f"{number}.") for number in range(3))
    second.pause()
    third.cancel("nobody wants it")

    assert runtime.list() == (second, first)
    assert runtime.list(TaskFilter(ended=True)) == (third, second, first)
    assert runtime.list(TaskFilter(statuses={"paused"})) == (second,)
    assert runtime.list(status="paused") == runtime.list(TaskFilter(status="paused")) == (second,)
    assert runtime.list(TaskFilter(ended=True, offset=1, limit=1)) == (second,)
    with pytest.raises(UwfError, match="there is no workflow other"):
        runtime.list(TaskFilter(workflow="other"))


def test_several_tasks_run_at_once_and_tell_in_order_how_each_stopped(
    runtime: TaskRuntime,
) -> None:
    met = Barrier(2)
    players = {**PLAYERS, "writer": lambda _context: {"text": str(met.wait(20))}}
    together = TaskRuntime(runtime.path, players=players)
    tasks = [together.start(DEMO, "x"), together.start(DEMO, "y"), together.start(DEMO, "z")]
    tasks[1].pause()

    runs = together.run_all(tasks, jobs=2)

    assert [(run.task_id, run.stopped) for run in runs] == [
        (each.task_id, stopped)
        for each, stopped in zip(tasks, ("end", "paused", "end"), strict=True)
    ]


@pytest.mark.parametrize("pause_s", [0, 60])
def test_ctrl_c_ends_all_agents_of_several_tasks(
    runtime: TaskRuntime, program: Callable[..., str], pause_s: int
) -> None:
    def give() -> Iterator[TaskHandle]:
        yield from tasks
        Event().wait(pause_s)

    agent = program("sleep 60")
    plain = TaskRuntime(runtime.path)
    tasks = [plain.start(text, "x", agents=agent) for text in (DEMO, SPLITS)]
    Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        runtime.run_all(give())

    errors = [tasks[0].error, *(each.error for each in tasks[1].query().branches)]
    assert errors == ["it was interrupted"] * 3


def test_damaged_task_is_in_the_list_and_a_query_says_why(
    runtime: TaskRuntime, task: TaskHandle
) -> None:
    other = runtime.start(DEMO, "Do it.")
    ref = Path(runtime.path) / "refs" / "threads" / task.task_id
    ref.write_text(open_store(runtime.path).refs.find("refs/workflows/demo") + "\n")  # type: ignore[operator]  # it is there

    assert runtime.list() == (other, task)
    assert runtime.list(TaskFilter(statuses=["damaged"])) == (task,)
    with pytest.raises(StoreDamaged):
        runtime.query(task.task_id)


def test_every_verb_of_a_task_can_be_called_by_its_id(runtime: TaskRuntime) -> None:
    task_id = runtime.start(DEMO, "Do it.").task_id

    seen: list[TaskStep] = []
    assert runtime.step(task_id).role == "writer"
    runtime.pause(task_id, "look at it")
    assert runtime.query(task_id).status == "paused"
    runtime.resume(task_id)
    runtime.patch_state(task_id, {"a": 1})
    runtime.append(task_id, ADDED, "one more")
    assert runtime.run(task_id, until="checker", on_step=seen.append).stopped == "until"
    assert [step.depth for step in seen] == [2]
    assert runtime.wait(task_id, 1).state == {"a": 1}
    runtime.interrupt(task_id, "enough")
    runtime.cancel(task_id)
    assert runtime.query(task_id).status == "killed"


def test_runtime_logs_if_the_environment_asks_for_it(store: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environ = {**os.environ, "UWF_DEBUG": "log"}
    runtime = TaskRuntime(store, players=PLAYERS, cwd=tmp_path, environ=environ)
    try:
        runtime.start(DEMO, "Do it.").step()
    finally:
        switch_off()

    assert '"function played"' in log.read_text()


def test_every_wish_reaches_the_list() -> None:
    wanted = TaskFilter(
        ended=True, workflow="a", statuses=["ready"], after=1, before=2, offset=3, limit=4
    )

    assert build_list_request(wanted) == ListRequest(
        archived=True,
        workflow="a",
        statuses=frozenset({"ready"}),
        after_ms=1,
        before_ms=2,
        offset=3,
        limit=4,
    )
