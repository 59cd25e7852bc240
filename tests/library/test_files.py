"""`task.files`, `task.restore` and `step.files`."""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from commands.world import DEMO
from programs import run_python

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


# How many files a step in a warm process opens or makes, by a function that plays its role.
#
# At most 15 in all. Below objects/ these are four: the pack of the transition, its index, its
# `.keep` and their folder. All else are these six:
#
#     uwf/locks/ID                the lock of the thread
#     refs/threads/ID             read under that lock
#     uwf/ref-locks/guard-NN      the guard of the ref's lock
#     uwf/ref-locks/.tmp_X        the new value, which becomes the ref
#     refs/threads/ID             compared under the ref's lock
#     refs/threads                forced to the disk

_MOST = 15
_ELSEWHERE = 6


def test_step_opens_few_files(tmp_path: Path) -> None:
    # What happened to files in one step, by the names of Python's audit events.
    script = Path(__file__).with_name("files_of_a_step.py")
    opened = json.loads(run_python(script, cwd=tmp_path))
    made = [path for event, path in opened if event in {"open", "os.mkdir"}]
    elsewhere = [path for path in made if not path.startswith("/objects")]
    listed = [path for event, path in opened if event in {"os.listdir", "os.scandir"}]

    assert len(elsewhere) <= _ELSEWHERE, "\n".join(elsewhere)
    assert len(made) <= _MOST, "\n".join(made)
    assert list(Counter(path for path in made if path.startswith("/refs/threads/")).values()) == [2]
    assert len([path for path in listed if path.startswith("/uwf/run")]) <= 1
    # What has not changed is not opened: settings, trust, HEAD, packed-refs, this process's start.
    kept = {"config", "HEAD", "trust", ".gitconfig", "packed-refs", "stat"}
    assert not [path for path in made if os.path.basename(path) in kept]
