import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plan.played import start_task

from uwf_git import TaskHandle
from uwf_git.commands.plan import read_plan_rows, read_plan_status
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.lock import lock_drive

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
        rows = read_plan_rows(store, str(tmp_path))
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
