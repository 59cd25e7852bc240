"""`task.files`, `task.restore` and `step.files`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from commands.world import DEMO

from uwf_git import AgentContext, Refused, TaskRuntime


@pytest.fixture
def project(tmp_path: Path, git: Callable[..., str]) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    git("init", "--quiet", cwd=project)
    (project / "notes").write_text("begun\n")
    git("add", ".", cwd=project)
    git("commit", "--quiet", "-m", "one", cwd=project)
    return project


def test_a_task_tells_and_restores_the_files_of_its_steps(store: str, project: Path) -> None:
    def write(context: AgentContext) -> Mapping[str, Any]:
        with (project / "notes").open("a") as notes:
            notes.write(f"{context.visit}\n")
        return {"text": "x"}

    def check(_context: AgentContext) -> Mapping[str, Any]:
        return {"ok": False}

    runtime = TaskRuntime(store, players={"writer": write, "checker": check}, cwd=project)
    task = runtime.start(DEMO, "Do it.")
    first, second, third = (task.step() for _ in range(3))

    assert second.files is None
    files = task.files(third.depth)
    assert f"{files.before}..{files.after}" == third.files
    assert (files.repository, files.changed) == (str(project), {"notes": (1, 0)})
    assert task.files().before == (first.files or "").partition("..")[0]

    restored = task.restore(1)
    assert (project / "notes").read_text() == "begun\n1\n"
    task.restore(restored.before)
    assert (project / "notes").read_text() == "begun\n1\n2\n"
    task.restore(1, before=True)
    assert (project / "notes").read_text() == "begun\n"
    with pytest.raises(Refused):
        task.files(9)
