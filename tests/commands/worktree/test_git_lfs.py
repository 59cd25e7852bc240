"""Files that git-lfs keeps: a record holds their pointers, a restore brings their bytes."""

import os
import shutil
from pathlib import Path

import pytest
from commands.step.test_ending import edits, files_of, user_state
from commands.worktree.project import begin_project, commit_all
from commands.world import Git, World

from uwf_git.commands.after import warn_of_files
from uwf_git.commands.control.files import find_files, open_files, restore_files

pytestmark = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="there is no git-lfs")

BEGUN = bytes(range(256)) * 400
DRAWN = BEGUN[::-1] + b"\n"


@pytest.mark.parametrize("scope", [("--local",), ()], ids=["project", "user"])
def test_what_an_agent_draws_comes_back(
    world: World, git: Git, scope: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    shutil.copy(os.environ["GIT_CONFIG_GLOBAL"], config)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    world.caller = world.caller._replace(environ=dict(os.environ))
    place = world.place
    begin_project(world, git)
    git("lfs", "install", *scope, "--skip-repo", cwd=place)
    (place / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (place / "old.bin").write_bytes(BEGUN)
    commit_all(place, git)
    assert git("show", "HEAD:old.bin", cwd=place).startswith("version https://git-lfs")
    thread, state = world.begun(), user_state(place, git)

    def draw(place: Path) -> None:
        (place / "old.bin").write_bytes(DRAWN)
        (place / "new.bin").write_bytes(DRAWN * 2)

    world.step(thread, edits(draw))

    before, after = files_of(world, thread)
    assert warn_of_files(world.store) == []
    assert user_state(place, git) == state
    for name in ("old.bin", "new.bin"):
        assert git("show", f"{after}:{name}", cwd=place).startswith("version https://git-lfs")
    restore_files(world.store, world.caller, thread, "1", is_before=True)
    assert (place / "old.bin").read_bytes() == BEGUN
    assert not (place / "new.bin").exists()
    restore_files(world.store, world.caller, thread, "1")
    assert (place / "old.bin").read_bytes() == DRAWN
    assert (place / "new.bin").read_bytes() == DRAWN * 2
    assert user_state(place, git) == state
    into = str(tmp_path / "then")
    open_files(find_files(world.store, world.caller.environ, thread, "1"), before, into)
    assert Path(into, "old.bin").read_bytes() == BEGUN
