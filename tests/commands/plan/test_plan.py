import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from plan.played import start_task
from refusing import refuses

from uwf_git import TaskHandle
from uwf_git.commands.caller import Caller
from uwf_git.commands.plan import (
    clean_plans,
    find_plan_thread,
    hold_plans,
    prepare_plans,
    read_plan_rows,
    read_plan_status,
)
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import lock_drive


def test_unfinished_workflow_is_left_alone(store: Store, tmp_path: Path) -> None:
    task = start_task(store.path, tmp_path)

    with refuses("plans-unfinished"):
        prepare_plans(store, str(tmp_path))
    with lock_drive(store, ThreadId(task.task_id), since_ms=1), refuses("plans-at-work"):
        prepare_plans(store, str(tmp_path))

    assert not (tmp_path / "docs").exists()


def test_plan_files_are_taken_as_they_are(store: Store, tmp_path: Path) -> None:
    with refuses("bad-plans") as none:
        prepare_plans(store, str(tmp_path), has_plans=True)
    (tmp_path / "docs/plans").mkdir(parents=True)
    (tmp_path / "docs/plans/1-short.md").touch()
    with refuses("bad-plans"):
        prepare_plans(store, str(tmp_path))
    (tmp_path / "docs/plans/1-short.md").unlink()
    (tmp_path / "docs/plans/000-准备.md").write_text("x")
    prepare_plans(store, str(tmp_path), has_plans=True)
    (tmp_path / "docs/plans/000-b.md").touch()

    with refuses("bad-plans") as bad:
        prepare_plans(store, str(tmp_path), has_plans=True)
    assert none.value.facts["problems"] == ["docs/plans has no plan file, named NNN-name.md"]
    assert [each.rpartition(" ")[2] for each in bad.value.facts["problems"]] == ["0", "empty"]


def test_plans_are_begun_one_after_the_other(store: Store, tmp_path: Path) -> None:
    def begin() -> str:
        with hold_plans(store):
            try:
                prepare_plans(store, str(tmp_path))
            except Refused:
                return "unfinished"
            start_task(store.path, tmp_path)
            return "begun"

    with ThreadPoolExecutor(4) as pool:
        told = [pool.submit(begin) for _ in range(4)]

    assert sorted(each.result() for each in told) == ["begun", *["unfinished"] * 3]


def test_plan_files_are_left_alone(store: Store, tmp_path: Path) -> None:
    (tmp_path / "docs/plans").mkdir(parents=True)
    (tmp_path / "docs/plans/000-准备.md").touch()

    with refuses("plans-there", match="准备"):
        prepare_plans(store, str(tmp_path))


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
    assert clean_plans(store, caller, str(project), with_plans=True) == NOTHING


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

    with lock_drive(store, ThreadId(task.task_id), since_ms=1), refuses("plans-at-work"):
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
    task = start_task(store.path, project, status_file=named)
    task.update_state({"statusFile": "src/000-a.md", "planDir": "src"})
    assert read_plan_status(store, str(project))["phase"] == "executing"

    cleaned = clean_plans(store, caller, str(project), with_plans=True)["removed"]

    assert set(cleaned) == {*removed, STATE, "docs/plans/000-准备.md", "docs/plans/001-b.md"}
    assert (project.parent / "mine").is_file()


STATE = ".state/workflow.state.json"


WAITS, NOT_YET, AT_IT, DONE = "failed", "pending", "executing", "completed"

# What is done to a thread of two plans, by whoever, and what is told then.
TABLE: list[tuple[str, Callable[[TaskHandle], object], tuple[object, ...], list[str]]] = [
    ("begun", lambda _: None, ("planning", None, 0, None), []),
    ("a step", lambda task: task.step(), ("planning", None, 0, None), []),
    ("paused", lambda task: task.pause(), ("planning", None, 0, True), []),
    ("resumed", lambda task: task.resume(), ("planning", None, 0, None), []),
    ("verified", lambda task: task.step(), ("executing", None, 0, None), []),
    ("run", lambda task: task.run(), ("waiting_human", "000-准备", 1, None), [WAITS, NOT_YET]),
    ("paused", lambda task: task.pause(), ("waiting_human", "000-准备", 1, True), [WAITS, NOT_YET]),
    ("resumed", lambda t: t.resume(), ("waiting_human", "000-准备", 1, None), [WAITS, NOT_YET]),
    ("continued", lambda t: t.retry("pip"), ("executing", "000-准备", 0, None), [AT_IT, NOT_YET]),
    (
        "rejected",
        lambda t: t.run(max_steps=2),
        ("executing", "000-准备", 1, None),
        [AT_IT, NOT_YET],
    ),
    ("done", lambda t: t.run(max_steps=2), ("executing", "001-b", 0, None), [DONE, AT_IT]),
    ("ended", lambda task: task.run(), ("completed", None, 0, None), [DONE, DONE]),
]
BACK = (
    "taken back",
    lambda task: task.poke(),
    ("executing", "000-准备", 1, None),
    [AT_IT, NOT_YET],
)
KILLED = ("killed", lambda t: t.cancel("enough"), ("failed", "000-准备", 1, None), [WAITS, NOT_YET])


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (TABLE, None),
        ([*TABLE[:11], BACK], "缺少测试; x; write one"),
        ([*TABLE[:6], KILLED], "enough"),
    ],
    ids=["completed", "taken back", "killed"],
)
def test_words_whoever_drove_paused_or_killed_it(
    store: Store, tmp_path: Path, table: list[Any], error: str | None
) -> None:
    task = start_task(store.path, tmp_path)
    for what, act, expected, words in table:
        act(task)
        told = read_plan_status(store, str(tmp_path))
        rows, _misnamed = read_plan_rows(store, str(tmp_path))
        seen = (told["phase"], told["currentPlan"], told["retryCount"], told.get("paused"))
        assert (seen, [row["status"] for row in rows]) == (expected, words), what
        # The file is a view: it is mended, whoever drove.
        assert json.loads((tmp_path / STATE).read_text()) | {"driver": None} == told

    assert told["error"] == error
    (tmp_path / STATE).unlink()
    lives = told["phase"] not in {"completed", "failed"}
    assert (read_plan_status(store, str(tmp_path))["phase"] == "idle") is not lives
    assert (tmp_path / STATE).exists() is lives


def test_state_file_comes_back_while_the_thread_lives(store: Store, tmp_path: Path) -> None:
    task = start_task(store.path, tmp_path)

    told = read_plan_status(store, str(tmp_path))
    assert json.loads((tmp_path / STATE).read_text()) | {"driver": None} == told
    # Whoever drives has written where it listens, and may have been killed.
    (tmp_path / STATE).write_text(json.dumps(told | {"address": "127.0.0.1", "port": 1}))
    assert read_plan_status(store, str(tmp_path))["port"] is None
    with lock_drive(store, ThreadId(task.task_id), since_ms=1):
        driven = read_plan_status(store, str(tmp_path))
    assert (driven["port"], driven["driver"]) == (1, os.getpid())
    assert told["thread"] == task.task_id
    assert told["repo"] == store.path


def test_state_that_cannot_be_written_is_told(store: Store, tmp_path: Path) -> None:
    start_task(store.path, tmp_path)
    (tmp_path / ".state").write_text("in the way")

    assert read_plan_status(store, str(tmp_path))["phase"] == "planning"


@pytest.fixture
def project_find(tmp_path: Path) -> Path:
    project_find = tmp_path / "项目"
    project_find.mkdir()
    return project_find


def found(store: Store, project_find: Path) -> str | None:
    tip = find_plan_thread(store, str(project_find))
    return None if tip is None else tip.record.thread


def name_in_state_file(project_find: Path, thread: object) -> None:
    (project_find / ".state").mkdir(exist_ok=True)
    (project_find / ".state/workflow.state.json").write_text(json.dumps({"thread": thread}))


def test_unfinished_thread_of_the_directory(
    store: Store, project_find: Path, tmp_path: Path
) -> None:
    start_task(store.path, tmp_path)
    assert found(store, project_find) is None
    task = start_task(store.path, project_find)
    (tmp_path / "link").symlink_to(project_find)

    assert found(store, project_find) == task.task_id
    assert found(store, tmp_path / "link") == task.task_id


def test_ended_thread_is_found_by_the_state_file_alone(store: Store, project_find: Path) -> None:
    task = start_task(store.path, project_find)
    task.cancel("enough")

    assert found(store, project_find) is None
    name_in_state_file(project_find, task.task_id)
    assert found(store, project_find) == task.task_id
    newer = start_task(store.path, project_find)
    assert found(store, project_find) == newer.task_id


def test_state_file_cannot_name_the_thread_of_another_directory(
    store: Store, project_find: Path, tmp_path: Path
) -> None:
    elsewhere = start_task(store.path, tmp_path).task_id
    for named in (elsewhere, "01J00000000000000000000001", "x", 1, None):
        name_in_state_file(project_find, named)
        assert found(store, project_find) is None


def test_state_file_is_believed_in_a_directory_that_was_renamed(
    store: Store, project_find: Path, tmp_path: Path
) -> None:
    task = start_task(store.path, project_find)
    name_in_state_file(project_find, task.task_id)
    project_find.rename(tmp_path / "renamed")

    assert found(store, tmp_path / "renamed") == task.task_id
