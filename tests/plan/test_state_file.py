import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from plan.stories import Story

from uwf_git.plan.phases import IDLE, STATE_FILE, fold_story, read_state, write_state

WHERE = {"thread": "T", "repo": "/s.git", "address": "127.0.0.1", "port": 9527}


def test_state_is_written_only_if_it_changed(tmp_path: Path) -> None:
    state = fold_story(Story("做一个网站").planned().told)

    assert write_state(str(tmp_path), state, WHERE)
    first = (tmp_path / STATE_FILE).stat()
    assert not write_state(str(tmp_path), state, WHERE)
    assert (tmp_path / STATE_FILE).stat().st_ino == first.st_ino
    assert read_state(str(tmp_path))["currentPlan"] == "000-准备"
    assert write_state(str(tmp_path), IDLE, {})
    assert read_state(str(tmp_path))["phase"] == "idle"
    assert sorted(os.listdir(tmp_path / ".state")) == [".gitignore", "workflow.state.json"]


def test_state_is_no_file_of_the_project(tmp_path: Path, git: Callable[..., str]) -> None:
    """Only folders of ours ignore themselves."""
    git("init", "--quiet", cwd=tmp_path)
    (tmp_path / ".state").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/x.md").touch()

    write_state(str(tmp_path), IDLE, {})
    write_state(str(tmp_path), IDLE, {}, state_file="docs/state.json")
    write_state(str(tmp_path), IDLE, {}, state_file="new/state.json")
    write_state(str(tmp_path), IDLE, {}, state_file="state.json")

    status = git("status", "--short", "--untracked-files=all", cwd=tmp_path).splitlines()
    assert status == ["?? docs/state.json", "?? docs/x.md", "?? state.json"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_file_that_is_none(tmp_path: Path, content: bytes) -> None:
    assert read_state(str(tmp_path)) == {}
    (tmp_path / ".state").mkdir()
    (tmp_path / STATE_FILE).write_bytes(content)

    assert read_state(str(tmp_path)) == {}


def test_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".state").mkdir()
    os.mkfifo(tmp_path / STATE_FILE)

    assert read_state(str(tmp_path)) == {}
    assert write_state(str(tmp_path), IDLE, {})
    assert read_state(str(tmp_path))["phase"] == "idle"


def test_mark_of_an_editor(tmp_path: Path) -> None:
    (tmp_path / ".state").mkdir()
    (tmp_path / STATE_FILE).write_bytes(b"\xef\xbb\xbf" + json.dumps(WHERE).encode())

    assert read_state(str(tmp_path)) == WHERE


def test_state_outside_is_left_alone(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".state").symlink_to(tmp_path)

    assert not write_state(str(project), IDLE, WHERE)
    assert not write_state(str(project), IDLE, WHERE, state_file="../x.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]


@pytest.mark.parametrize("target", [None, "/dev/zero"])
def test_file_without_end_is_not_read_to_it(tmp_path: Path, target: str | None) -> None:
    (tmp_path / ".state").mkdir()
    if target is None:
        with open(tmp_path / STATE_FILE, "wb") as file:
            file.write(b'{"thread": "T"}')
            file.seek(15 * 1024**4)
            file.truncate()
    else:
        (tmp_path / STATE_FILE).symlink_to(target)

    assert read_state(str(tmp_path)) == {}
