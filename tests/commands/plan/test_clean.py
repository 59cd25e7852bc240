import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plan.played import start_task
from refusing import refuses

from uwf_git.commands.caller import Caller
from uwf_git.commands.plan import PlansAtWork, clean_plans, read_plan_status
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.lock import lock_drive

NOTHING: dict[str, Any] = {"ended": None, "removed": []}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with plans, a report, a log, and files that are none of these."""
    project = tmp_path / "project"
    for name in (
        "docs/plans/000-准备.md",
        "docs/plans/001-b.md",
        "docs/plans/README.md",
        "docs/memory/session-2026-11-23.md",
        ".state/status.json",
        ".state/notes",
        "src/000-a.md",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    return project


@pytest.fixture
def caller(clock: Callable[[], int], tmp_path: Path) -> Caller:
    return Caller(clock, dict(os.environ), str(tmp_path))


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_unfinished_thread_is_ended_and_its_state_removed(
    store: Store, project: Path, caller: Caller
) -> None:
    task = start_task(store.path, project)
    read_plan_status(store, str(project))
    before = files(project)

    cleaned = clean_plans(store, caller, str(project))

    state = {".state/workflow.state.json", ".state/status.json"}
    assert cleaned["ended"] == task.task_id
    assert set(cleaned["removed"]) == state
    assert files(project) == before - state
    assert task.status == "killed"
    assert read_plan_status(store, str(project))["phase"] == "idle"
    assert clean_plans(store, caller, str(project)) == NOTHING


def test_all_are_the_plan_files_and_nothing_else(
    store: Store, project: Path, caller: Caller
) -> None:
    before = files(project)
    (project / "docs/plans/002-link.md").symlink_to(project / "src/000-a.md")
    (project / "docs/plans/003-folder.md").mkdir()

    cleaned = clean_plans(None, caller, str(project), with_plans=True)

    plans = {"docs/plans/000-准备.md", "docs/plans/001-b.md"}
    assert set(cleaned["removed"]) == {".state/status.json", *plans}
    assert before - set(cleaned["removed"]) <= files(project)
    assert (project / "docs/plans/002-link.md").is_symlink()
    assert clean_plans(store, caller, str(project), with_plans=True) == {
        "ended": None,
        "removed": [],
    }


def test_no_link_is_followed(store: Store, project: Path, tmp_path: Path, caller: Caller) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/000-a.md").touch()
    (tmp_path / "elsewhere/status.json").touch()
    os.rename(project / "docs/plans", project / "docs/mine")
    (project / "docs/plans").symlink_to(project / "docs/mine")
    with refuses("behind-link"):
        clean_plans(store, caller, str(project), with_plans=True)
    (project / "docs/plans").unlink()
    (project / "docs/plans").symlink_to(tmp_path / "elsewhere")
    with refuses("behind-link"):
        clean_plans(store, caller, str(project), with_plans=True)
    os.rename(project / ".state", project / ".old")
    (project / ".state").symlink_to(tmp_path / "elsewhere")
    with refuses("behind-link"):
        clean_plans(store, caller, str(project))

    assert files(tmp_path / "elsewhere") == {"000-a.md", "status.json"}
    assert "docs/mine/000-准备.md" in files(project)


def test_thread_at_work_is_left_alone(store: Store, project: Path, caller: Caller) -> None:
    task = start_task(store.path, project)
    read_plan_status(store, str(project))
    before = files(project)

    with lock_drive(store, ThreadId(task.task_id), since_ms=1), pytest.raises(PlansAtWork):
        clean_plans(store, caller, str(project), with_plans=True)

    assert files(project) == before
    assert task.status == "ready"


@pytest.mark.parametrize(
    ("named", "removed"),
    [("out/report.json", {"out/report.json"}), ("../mine", {".state/status.json"})],
)
def test_report_is_the_file_that_the_thread_names(
    store: Store, project: Path, caller: Caller, named: str, removed: set[str]
) -> None:
    (project / "out").mkdir()
    (project / "out/report.json").touch()
    (project.parent / "mine").touch()
    start_task(store.path, project, status_file=named)

    assert set(clean_plans(store, caller, str(project))["removed"]) == removed
    assert (project.parent / "mine").is_file()
