from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from plan.played import start_task
from refusing import refuses

from uwf_git.commands.plan import PlansAtWork, hold_plans, prepare_plans
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.lock import lock_drive


def test_unfinished_workflow_is_left_alone(store: Store, tmp_path: Path) -> None:
    task = start_task(store.path, tmp_path)

    with refuses("plans-unfinished"):
        prepare_plans(store, str(tmp_path))
    with lock_drive(store, ThreadId(task.task_id), since_ms=1), pytest.raises(PlansAtWork):
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
