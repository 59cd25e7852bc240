import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Barrier, Event, Timer
from typing import Any

import pytest
from commands.world import DEMO
from library.conftest import PLAYERS
from refusing import refuses

from uwf_git import (
    AgentContext,
    BadUsage,
    Conflict,
    Limits,
    Refused,
    StoreDamaged,
    TaskFilter,
    TaskHandle,
    TaskRuntime,
    TaskStep,
    UwfError,
)
from uwf_git.agents.group import check_cancelled
from uwf_git.commands.inspect.list import ListRequest
from uwf_git.debug_log import switch_off
from uwf_git.library.runtime import build_list_request
from uwf_git.library.starting import (
    SourceText,
    find_source,
    read_source,
    to_agent_words,
    to_limit_names,
)
from uwf_git.model.limits import LIMITS
from uwf_git.model.yaml_reader import parse_yaml
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


def test_several_tasks_run_at_once_and_tell_in_order_how_each_stopped(runtime: TaskRuntime) -> None:
    met = Barrier(2)
    players = {**PLAYERS, "writer": lambda _context: {"text": str(met.wait(20))}}
    together = TaskRuntime(runtime.path, players=players)
    tasks = [together.start(DEMO, "x"), together.start(DEMO, "y"), together.start(DEMO, "z")]
    tasks[1].pause()

    assert [(run.task_id, run.stopped) for run in together.run_all(tasks, jobs=2)] == [
        (each.task_id, stopped)
        for each, stopped in zip(tasks, ("end", "paused", "end"), strict=True)
    ]


def test_branches_among_several_tasks_run_their_whole_task_once(runtime: TaskRuntime) -> None:
    together = TaskRuntime(runtime.path, players=dict.fromkeys(("one", "two"), lambda _: {}))
    task = together.start(SPLITS)
    task.run(max_steps=1)
    branches = together.list(TaskFilter(parent=task.task_id))

    runs = together.run_all(branches)

    assert [(run.task_id, run.stopped) for run in runs] == [(task.task_id, "end")] * 2


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


def test_ctrl_c_lets_no_further_function_of_several_tasks_begin(runtime: TaskRuntime) -> None:
    def play(_context: AgentContext) -> Mapping[str, Any]:
        # The other task has begun, too.
        Event().wait(0.5)
        os.kill(os.getpid(), signal.SIGINT)
        with suppress(KeyboardInterrupt):
            while not Event().wait(0.01):
                check_cancelled()
        return {"text": "done"}

    interrupted = TaskRuntime(runtime.path, players={**PLAYERS, "writer": play})
    tasks = [interrupted.start(DEMO, prompt) for prompt in "xy"]

    with pytest.raises(KeyboardInterrupt):
        interrupted.run_all(tasks, jobs=1)

    assert [each.query().depth for each in tasks] == [1, 0]


def test_damaged_task_is_in_the_list_and_a_query_says_why(
    runtime: TaskRuntime, task: TaskHandle
) -> None:
    other = runtime.start(DEMO, "Do it.")
    ref = Path(runtime.path) / "refs" / "threads" / task.task_id
    ref.write_text(open_store(runtime.path).refs.find("refs/workflows/demo") + "\n")  # type: ignore[operator]  # it is there

    assert {event.task_id for event in runtime.events()} == {other.task_id}
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


@pytest.mark.parametrize(
    ("workflow", "told"),
    [
        ("none", "there is no workflow none"),
        ("none.yaml", r"none\.yaml' cannot be read: No such file or directory"),
        ("no/such/file", "No such file"),
        ("roles:\n  - 1\n", "problem"),
    ],
)
def test_invalid_task_is_refused(workflow: str, told: str, runtime: TaskRuntime) -> None:
    with pytest.raises((Refused, OSError), match=told):
        runtime.start(workflow, "Do it.")
    assert runtime.list() == ()


def test_agents_are_written_as_they_are_typed() -> None:
    assert to_agent_words(None) == ()
    assert to_agent_words("uwf-claude --fast") == ("uwf-claude --fast",)
    assert to_agent_words({"a": "one", "b": "two=2"}) == ("a=one", "b=two=2")
    assert to_agent_words({"a": {"command": "ü", "timeout": 1}}) == (
        'a={"command": "ü", "timeout": 1}',
    )
    with refuses("bad-settings", match="the agent of a cannot be written as JSON"):
        to_agent_words({"a": {"command": object()}})


def test_every_limit_has_a_python_name() -> None:
    every = Limits(max_steps=1, max_execution_time=2, max_tokens=3, max_cost=None)

    assert sorted(to_limit_names(every)) == sorted(LIMITS)
    assert set(every) == set(Limits.__annotations__)
    assert to_limit_names(every)["maxCost"] is None
    assert to_limit_names(None) == {}


def test_unknown_limit_is_refused(runtime: TaskRuntime) -> None:
    with pytest.raises(Refused, match="max_stepps is no limit"):
        runtime.start(DEMO, "Do it.", limits={"max_stepps": 1})  # type: ignore[arg-type]  # that is what is tried


@pytest.mark.parametrize("name", ["demo", "4B1A5GFXFHAJF", "yaml", ""])
def test_text_of_one_line_without_a_slash_is_a_name(name: str, tmp_path: Path) -> None:
    assert find_source(name, str(tmp_path)) is None
    with pytest.raises(BadUsage, match="is neither YAML nor the path of a file"):
        read_source(name, str(tmp_path))


def test_file_is_read_where_the_runtime_stands(tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(DEMO)

    expected = SourceText(DEMO.encode(), str(path))
    assert find_source("demo.yaml", str(tmp_path)) == expected
    assert find_source(f"{tmp_path}/demo.yaml", "/") == expected
    assert find_source(path, "/") == expected
    assert find_source(Path("demo.yaml"), str(tmp_path)) == expected


def test_yaml_is_text_of_several_lines_or_bytes() -> None:
    assert (
        find_source(DEMO, "/") == find_source(DEMO.encode(), "/") == SourceText(DEMO.encode(), None)
    )


def test_definition_as_python_has_it_is_the_same_workflow(runtime: TaskRuntime) -> None:
    definition = parse_yaml(DEMO).value

    assert runtime.put(DEMO).workflow == runtime.put(definition).workflow
    assert runtime.start(definition, "Do it.").workflow_name == "demo"


def test_file_includes_files_beside_it(runtime: TaskRuntime, tmp_path: Path) -> None:
    (tmp_path / "write.md").write_text("Write well.")
    (tmp_path / "demo.yaml").write_text(
        DEMO.replace("systemPrompt: Write.", "systemPrompt: !include write.md")
    )

    assert runtime.put("demo.yaml").changed
    assert not runtime.put(tmp_path / "demo.yaml").changed


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
