import json
from pathlib import Path

import pytest
from plan.played import start_task

from uwf_git import TaskHandle
from uwf_git.commands.plan import find_plan_thread
from uwf_git.store.store import Store


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "项目"
    project.mkdir()
    return project


def found(store: Store, project: Path) -> str | None:
    tip = find_plan_thread(store, str(project))
    return None if tip is None else tip.record.thread


def name_in_state_file(project: Path, thread: object) -> None:
    (project / ".state").mkdir(exist_ok=True)
    (project / ".state/workflow.state.json").write_text(json.dumps({"thread": thread}))


def begin(store: Store, project: Path) -> TaskHandle:
    return start_task(store.path, project)


def test_unfinished_thread_of_the_directory(store: Store, project: Path, tmp_path: Path) -> None:
    begin(store, tmp_path)
    assert found(store, project) is None
    task = begin(store, project)
    (tmp_path / "link").symlink_to(project)

    assert found(store, project) == task.task_id
    assert found(store, tmp_path / "link") == task.task_id


def test_ended_thread_is_found_by_the_state_file_alone(store: Store, project: Path) -> None:
    task = begin(store, project)
    task.cancel("enough")

    assert found(store, project) is None
    name_in_state_file(project, task.task_id)
    assert found(store, project) == task.task_id
    newer = begin(store, project)
    assert found(store, project) == newer.task_id


def test_state_file_cannot_name_the_thread_of_another_directory(
    store: Store, project: Path, tmp_path: Path
) -> None:
    other = begin(store, tmp_path)

    for named in (other.task_id, "01J00000000000000000000001", "x", 1, None):
        name_in_state_file(project, named)
        assert found(store, project) is None


def test_state_file_is_believed_in_a_directory_that_was_renamed(
    store: Store, project: Path, tmp_path: Path
) -> None:
    task = begin(store, project)
    name_in_state_file(project, task.task_id)
    project.rename(tmp_path / "renamed")

    assert found(store, tmp_path / "renamed") == task.task_id
