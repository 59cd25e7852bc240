import json
from pathlib import Path

from plan.played import start_task

from uwf_git.commands.plan.status import read_plan_rows, read_plan_status
from uwf_git.store.store import Store

STATE = ".state/workflow.state.json"


def test_words_whoever_drove(store: Store, tmp_path: Path) -> None:
    task = start_task(store.path, tmp_path)
    seen = []
    for act in (None, task.run, lambda: task.retry("use pip"), task.pause, task.resume, task.run):
        if act is not None:
            act()
        told = read_plan_status(store, str(tmp_path))
        seen.append((told["phase"], told["currentPlan"], told["retryCount"], told.get("paused")))

    assert seen == [
        ("planning", None, 0, None),
        ("waiting_human", "000-准备", 1, None),
        ("executing", "000-准备", 0, None),
        ("executing", "000-准备", 0, True),
        ("executing", "000-准备", 0, None),
        ("completed", None, 0, None),
    ]
    (tmp_path / STATE).unlink()
    assert read_plan_status(store, str(tmp_path))["phase"] == "idle"


def test_state_file_comes_back_while_the_thread_lives(store: Store, tmp_path: Path) -> None:
    task = start_task(store.path, tmp_path)

    told = read_plan_status(store, str(tmp_path))
    assert json.loads((tmp_path / STATE).read_text()) == told
    # Whoever drives has written where it listens.
    (tmp_path / STATE).write_text(json.dumps(told | {"address": "127.0.0.1", "port": 1}))
    assert read_plan_status(store, str(tmp_path))["port"] == 1
    assert told["thread"] == task.task_id
    assert told["repo"] == store.path


def test_state_that_cannot_be_written_is_told(store: Store, tmp_path: Path) -> None:
    start_task(store.path, tmp_path)
    (tmp_path / ".state").write_text("in the way")

    assert read_plan_status(store, str(tmp_path))["phase"] == "planning"


def test_plans_without_a_thread(store: Store, tmp_path: Path) -> None:
    (tmp_path / "docs/plans").mkdir(parents=True)
    (tmp_path / "docs/plans/000-准备.md").touch()
    row = {"file": "docs/plans/000-准备.md", "number": 0, "name": "准备"}

    for known in (None, store):
        assert read_plan_rows(known, str(tmp_path)) == [
            row | {"status": "pending", "tracked": False}
        ]
    assert read_plan_status(None, str(tmp_path))["phase"] == "idle"
    assert not (tmp_path / STATE).exists()


def test_plans_of_a_thread(store: Store, tmp_path: Path) -> None:
    start_task(store.path, tmp_path).run()
    (tmp_path / "docs/plans").mkdir(parents=True)
    (tmp_path / "docs/plans/000-准备.md").touch()

    rows = read_plan_rows(store, str(tmp_path))

    assert [(row["number"], row["status"], row.get("missing")) for row in rows] == [
        (0, "failed", None),
        (1, "pending", True),
    ]
