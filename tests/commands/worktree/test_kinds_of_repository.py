"""Steps and restores in repositories of many kinds: the files come back, the user's state stays."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.step.test_ending import edits, files_of, user_state
from commands.worktree.project import begin_project
from commands.world import Git, World

from uwf_git.commands.after import warn_of_files
from uwf_git.commands.control.files import restore_files

Make = Callable[[Path, Git], None]
FILES = ("-c", "protocol.file.allow=always")


def split_index(place: Path, git: Git) -> None:
    git("config", "core.splitIndex", "true", cwd=place)
    git("update-index", "--split-index", cwd=place)


def sparse_checkout(place: Path, git: Git) -> None:
    git("sparse-checkout", "set", "--no-cone", "/*", "!/part/", cwd=place)
    assert not (place / "part").exists()


def sparse_index(place: Path, git: Git) -> None:
    git("sparse-checkout", "set", "--cone", "--sparse-index", cwd=place)


def detached(place: Path, git: Git) -> None:
    git("checkout", "--quiet", "--detach", cwd=place)


def lines_of_windows(place: Path, git: Git) -> None:
    git("config", "core.autocrlf", "true", cwd=place)
    (place / "notes").write_bytes(b"begun\r\n")


def with_submodule(place: Path, git: Git) -> None:
    library = place.parent / "library"
    git("init", "--quiet", str(library), cwd=place)
    (library / "code").write_text("one\n")
    git("add", ".", cwd=library)
    git("commit", "--quiet", "-m", "one", cwd=library)
    git(*FILES, "submodule", "--quiet", "add", str(library), "lib", cwd=place)
    git("commit", "--quiet", "-m", "lib", cwd=place)


def in_a_rebase(place: Path, git: Git) -> None:
    git("commit", "--quiet", "--allow-empty", "-m", "two", cwd=place)
    git("-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-q", "-i", "HEAD^", cwd=place)


def staged_and_edited(place: Path, git: Git) -> None:
    (place / "notes").write_text("staged\n")
    git("add", "notes", cwd=place)
    (place / "notes").write_text("edited\n")
    (place / "mine").write_text("untracked\n")
    (place / "soon").write_text("")
    git("add", "--intent-to-add", "soon", cwd=place)


def assumed_unchanged(place: Path, git: Git) -> None:
    git("update-index", "--assume-unchanged", "part/deep", cwd=place)


@pytest.mark.parametrize(
    "make",
    [
        split_index,
        sparse_checkout,
        sparse_index,
        detached,
        lines_of_windows,
        with_submodule,
        in_a_rebase,
        staged_and_edited,
        assumed_unchanged,
    ],
)
def test_files_come_back_and_the_state_of_the_user_stays(
    world: World, git: Git, make: Make
) -> None:
    place = world.place
    begin_project(world, git)
    make(place, git)
    (place / "old").write_text("old\n")
    thread = world.begun()
    state, status = (
        user_state(place, git),
        git("--no-optional-locks", "status", "--porcelain", cwd=place),
    )
    notes = (place / "notes").read_bytes()

    def change(place: Path) -> None:
        (place / "notes").write_bytes(b"by the agent\n")
        (place / "old").unlink()
        (place / "new folder").mkdir()
        (place / "new folder" / "file").write_text("new\n")

    world.step(thread, edits(change))

    assert user_state(place, git) == state
    assert warn_of_files(world.store) == []
    changed = git("diff", "--name-only", *files_of(world, thread), cwd=place).splitlines()
    assert changed == ["new folder/file", "notes", "old"]
    restored = restore_files(world.store, world.caller, thread, "1", is_before=True)
    assert (place / "notes").read_bytes() == notes
    assert (place / "old").read_text() == "old\n"
    assert not (place / "new folder").exists()
    assert user_state(place, git) == state
    assert git("--no-optional-locks", "status", "--porcelain", cwd=place) == status
    restore_files(world.store, world.caller, thread, restored.before)
    assert (place / "notes").read_text() == "by the agent\n"
    assert not (place / "old").exists()
    assert user_state(place, git) == state


def test_a_linked_work_tree_and_a_folder_inside_are_recorded_whole(
    world: World, git: Git, tmp_path: Path
) -> None:
    begin_project(world, git)
    linked = tmp_path / "linked"
    git("worktree", "add", "--quiet", "--detach", str(linked), cwd=world.place)
    thread = world.begun()
    inside = str(linked / "part")
    world.step(thread, edits(lambda _: (linked / "notes").write_text("x\n")), workdir=inside)
    assert git("diff", "--name-only", *files_of(world, thread), cwd=linked) == "notes\n"
    restore_files(world.store, world.caller, thread, "1", is_before=True)
    assert (linked / "notes").read_text() == "begun\n"
    assert git("--no-optional-locks", "status", "--porcelain", cwd=linked) == ""


def test_a_full_disk_fails_no_step(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun()
    objects = world.place / ".git" / "objects"
    objects.rename(objects.with_name("kept"))
    objects.symlink_to("/proc")
    try:
        world.step(thread, edits(lambda place: (place / "new").write_text("x" * 1000)))
    finally:
        objects.unlink()
        objects.with_name("kept").rename(objects)
    assert files_of(world, thread) == []
    assert len(warn_of_files(world.store)) == 1
    assert os.listdir(world.place)
