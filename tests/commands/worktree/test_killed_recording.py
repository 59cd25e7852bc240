"""A step and a restore, killed before and after each process of git, lose and double nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands.step.test_ending import user_state
from commands.worktree.project import begin_project
from commands.world import DEMO, Git, World

from uwf_git.commands.control.files import find_files, restore_files, view_files
from uwf_git.commands.verify.verify import check_ranges, find_targets
from uwf_git.model.names import ThreadId

AGENT = """\
cat > /dev/null
echo ran >> "{ran}"
echo edited >> notes
echo '{{"meta": {{"text": "x", "ok": false}}}}'
"""
# Kills its parent at the Nth call, before or after git has run.
WRAPPER = """\
#!/bin/sh
number=$(($(cat "{count}" 2>/dev/null || echo 0) + 1))
echo $number > "{count}"
[ $number = {at} ] && [ {when} = before ] && kill -9 $PPID && exit 1
{git} "$@"
status=$?
[ $number = {at} ] && [ {when} = after ] && kill -9 $PPID
exit $status
"""
KILLED = -9


def run_killed(
    world: World, tmp_path: Path, words: tuple[str, ...], *, at: int, when: str
) -> tuple[int, int]:
    """Run `uwf` with a git that kills it; return its status, and how often git was called."""
    count, folder = tmp_path / "count", tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    count.unlink(missing_ok=True)
    wrapper = folder / "git"
    wrapper.write_text(WRAPPER.format(count=count, at=at, when=when, git=shutil.which("git")))
    wrapper.chmod(0o755)
    env = {**os.environ, "UWF_REPO": world.store.path, "PATH": f"{folder}:{os.environ['PATH']}"}
    argv = [sys.executable, "-m", "uwf_git", *words]
    ran = subprocess.run(argv, env=env, cwd=world.place, capture_output=True, check=False)
    return ran.returncode, int(count.read_text() if count.exists() else 0)


def check_whole(world: World, git: Git, thread: ThreadId) -> None:
    world.assert_whole()
    assert [*check_ranges(world.store, find_targets(world.store, []), cwd=world.caller.cwd)] == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_step_is_taken_up_with_its_files(
    world: World, git: Git, tmp_path: Path, when: str
) -> None:
    begin_project(world, git)
    ran = world.place.parent / "ran"
    command = world.program(AGENT.format(ran=ran), name="agent.tmp")
    for at in range(1, 100):
        git("checkout", "--quiet", "notes", cwd=world.place)
        state = user_state(world.place, git)
        ran.unlink(missing_ok=True)
        thread = world.begun(DEMO, command)
        words = ("thread", "step", thread)
        status, calls = run_killed(world, tmp_path, words, at=at, when=when)
        if calls < at:
            break
        assert status == KILLED
        status, _ = run_killed(world, tmp_path, words, at=0, when=when)
        assert status == 0
        assert ran.read_text() == "ran\n"
        check_whole(world, git, thread)
        found = find_files(world.store, world.caller.environ, thread, "1")
        assert [row["path"] for row in view_files(found)["changed"]] == ["notes"]
        assert user_state(world.place, git) == state
    assert calls > 10


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_restore_is_repeated_whole(
    world: World, git: Git, tmp_path: Path, when: str
) -> None:
    begin_project(world, git)
    command = world.program(AGENT.format(ran=world.place.parent / "ran"), name="agent.tmp")
    thread = world.begun(DEMO, command)
    for _ in range(2):
        assert run_killed(world, tmp_path, ("thread", "step", thread), at=0, when=when)[0] == 0
    state = user_state(world.place, git)
    for at in range(1, 100):
        (world.place / "notes").write_text(f"mine {at}\n")
        calls = run_killed(world, tmp_path, ("thread", "restore", thread, "1"), at=at, when=when)[1]
        if calls < at:
            break
        world.reopen()
        undo = restore_files(world.store, world.caller, thread, "1").before
        assert (world.place / "notes").read_text() == "begun\nedited\n"
        assert f"+mine {at}\n" in git("log", "-p", "--format=", undo, cwd=world.place)
        check_whole(world, git, thread)
        assert user_state(world.place, git) == state
    assert calls > 8
