from pathlib import Path

import pytest
from commands.world import DEMO
from hypothesis import given
from hypothesis import strategies as st
from seal import START_MS
from ulid import ULID

from uwf_git import Refused, TaskRuntime
from uwf_git.library.players import StepMemory
from uwf_git.library.starting import new_task_id
from uwf_git.library.values import KeptStore, Place
from uwf_git.model.names import is_thread_id


def place(now_ms: int) -> Place:
    return Place("", "/", {}, lambda: now_ms, None, {}, KeptStore(), StepMemory())


@given(st.integers(0, 2**48 - 1))
def test_id_is_a_ulid_of_its_time(now_ms: int) -> None:
    task_id = new_task_id(place(now_ms))

    assert is_thread_id(task_id)
    assert int(ULID.from_str(task_id).milliseconds) == now_ms


def test_no_two_ids_are_alike() -> None:
    ids = {new_task_id(place(START_MS)) for _ in range(1000)}

    assert len(ids) == 1000


def test_one_command_plays_all_roles_but_those_of_functions(runtime: TaskRuntime) -> None:
    task = runtime.start(DEMO, "Do it.", agents="nobody")
    without = TaskRuntime(runtime.path).start("demo", "Do it.", agents="nobody")

    assert without.query().document["agents"] == {"writer": "nobody", "checker": "nobody"}
    assert task.query().document["agents"] == {
        "writer": "python:writer",
        "checker": "python:checker",
    }


def test_default_agent_is_that_of_the_runtime_then_of_the_environment(store: str) -> None:
    runtime = TaskRuntime(store, environ={"UWF_AGENT": "one"})
    runtime.put(DEMO)

    by_variable = runtime.start("demo", "Do it.")
    named = TaskRuntime(store, environ={"UWF_AGENT": "one"}, agent="two").start("demo", "Do it.")

    assert by_variable.query().document["agents"]["writer"] == "one"
    assert named.query().document["agents"]["writer"] == "two"


def test_agents_run_in_the_given_directory(runtime: TaskRuntime, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()

    assert runtime.start(DEMO, "Do it.").query().document["workdir"] == str(tmp_path)
    task = runtime.start(DEMO, "Do it.", workdir="inner")
    assert task.query().document["workdir"] == str(inner)


@pytest.mark.parametrize(
    ("workflow", "prompt", "told"),
    [
        ("none", "Do it.", "there is no workflow none"),
        ("no/such/file", "Do it.", "No such file"),
        ("roles:\n  - 1\n", "Do it.", "problem"),
    ],
)
def test_invalid_task_is_refused(
    workflow: str, prompt: str, told: str, runtime: TaskRuntime
) -> None:
    with pytest.raises((Refused, OSError), match=told):
        runtime.start(workflow, prompt)
    assert runtime.list() == ()


def test_task_needs_a_prompt(runtime: TaskRuntime) -> None:
    with pytest.raises(Refused, match="the prompt is empty"):
        runtime.start(DEMO, " ")
    assert runtime.list() == ()
