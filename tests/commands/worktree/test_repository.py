"""What git says of the user's repository."""

import os
from pathlib import Path

import pytest
from commands.worktree.project import begin_project, commit_all, write_all
from commands.world import Git, World
from refusing import refuses

from uwf_git.commands.worktree.record import Worktree
from uwf_git.commands.worktree.repository import commit_tree, find_origin, git_of, name_index
from uwf_git.store.git.program import Kept, ProgramFailed


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    place = tmp_path / "a project"
    (place / "part").mkdir(parents=True)
    git("init", "--quiet", cwd=place)
    (place / "part" / "file").write_text("x")
    git("add", ".", cwd=place)
    git("commit", "--quiet", "-m", "x", cwd=place)
    return place


def test_a_variable_of_git_does_not_lead_to_another_repository(project: Path) -> None:
    environ = {**os.environ, "GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/"}
    assert find_origin(environ, str(project), at="", store="/s").repository == str(project / ".git")


def test_changes_are_told_by_name(project: Path, git: Git) -> None:
    git("mv", "part/file", "part/moved", cwd=project)
    for number in range(4):
        (project / f"new {number}").touch()

    with refuses("not-clean") as raised:
        find_origin(os.environ, str(project / "part"), at="", store="/s")

    assert raised.value.facts["changed"][:3] == ["part/file", "part/moved", "new 0"]
    assert raised.value.message.endswith(": part/file, part/moved, new 0 and 3 more")
    assert "git -C '" in (raised.value.hint or "")
    assert "`uwf thread run ID` goes on" in (raised.value.hint or "")


def test_the_store_in_use_is_no_change(project: Path, git: Git) -> None:
    """Of what is beside it git tells the folder, so the folder alone is not asked for."""
    store, other = project / "data" / "[s].git", project / "part" / "other.git"
    for path in (store, other):
        git("init", "--quiet", "--bare", str(path), cwd=project)

    with refuses("not-clean") as raised:
        find_origin(os.environ, str(project / "part"), at="", store=str(store))
    assert raised.value.facts["changed"] == ["part/other.git/"]
    assert "; data/[s].git is the store: put it into .git/info/exclude" in str(raised.value.hint)
    with refuses("not-clean"):
        find_origin(os.environ, str(project), at="", store=str(project))

    git("clean", "-qffd", "part", cwd=project)
    assert find_origin(os.environ, str(project), at="", store=str(store)).prefix == ""


def test_a_git_directory_is_no_work_tree(project: Path) -> None:
    with refuses("not-isolated", match="it is not in a work tree"):
        find_origin(os.environ, str(project / ".git"), at="", store="/s")


def test_a_commit_is_nobodys(project: Path, git: Git) -> None:
    own = str(project / ".git")
    kept = Kept(own, "[i18n]\n\tcommitEncoding = ISO-8859-1\n")
    tree = git("rev-parse", "@^{tree}", cwd=project).strip()
    commit = commit_tree(git_of(os.environ, own, kept=kept), tree, (), "wörds\n")
    told = git("show", "-s", "--format=%an %ae %cn %ce", commit, cwd=project)
    assert told == "uwf uwf@uwf uwf uwf@uwf\n"
    raw = git("cat-file", "commit", commit, cwd=project)
    assert raw.endswith("\n\nwörds\n")
    assert "\nencoding" not in raw


def test_what_git_says_is_the_reason(project: Path) -> None:
    git = git_of(os.environ, str(project / ".git"))
    with pytest.raises(ProgramFailed, match="git rev-parse failed: fatal: "):
        git.ask("rev-parse", "--verify", "nothing")
    with pytest.raises(ProgramFailed, match="git worktree failed: fatal: "):
        git.run_guarded("worktree", "add", "../x", "nothing")


# The tree of a worktree: everything that is not ignored; the same however often it is made.


@pytest.fixture
def worktree(world: World, git: Git) -> Worktree:
    """Return a worktree of a project, with a change, a new file and a repository in it."""
    base = begin_project(world, git)
    place = world.place.parent / "apart"
    git("worktree", "add", "--quiet", "--detach", str(place), cwd=world.place)
    (place / "notes").write_text("changed\n")
    (place / "new").write_text("new\n")
    (place / "ignored.tmp").write_text("x")
    (place / "part" / "deep").unlink()
    git("init", "--quiet", "inner", cwd=place)
    (place / "inner" / "text").write_text("inside\n")
    commit_all(place / "inner", git)
    (place / "inner" / "text").write_text("and more\n")
    thread, source = world.new_id(), str(world.place)
    git_dir = git("rev-parse", "--absolute-git-dir", cwd=place).strip()
    path, repository = str(place), str(world.place / ".git")
    return Worktree(thread, world.new_id(), source, repository, base, path, path, git_dir)


def test_a_tree_has_everything_and_the_index_stays(
    world: World, git: Git, worktree: Worktree
) -> None:
    before = git("status", "--porcelain", cwd=worktree.path)

    tree, kept = write_all(worktree)
    again = write_all(worktree)

    names = git("ls-tree", "-r", "--name-only", tree, cwd=worktree.path).split()
    assert names == [".gitignore", "inner", "new", "notes"]
    (inner,) = kept
    assert git("rev-parse", f"{tree}:inner", cwd=worktree.path).strip() == inner.commit
    assert git("show", f"{inner.ref}:text", cwd=world.place) == "and more\n"
    assert git("show", f"{inner.ref}^:text", cwd=world.place) == "inside\n"
    assert again == (tree, kept)
    assert git("status", "--porcelain", cwd=worktree.path) == before
    assert not Path(name_index(worktree.path)).exists()


def test_a_tree_is_written_without_the_git_directory_of_the_worktree(
    world: World, git: Git, worktree: Worktree
) -> None:
    """As somebody leaves it who has run `git worktree prune` in a hurry."""
    (world.place / "staged").write_text("the user's own")
    git("add", "staged", cwd=world.place)

    tree, _ = write_all(worktree._replace(git_dir=worktree.repository))

    names = git("ls-tree", "-r", "--name-only", tree, cwd=world.place).split()
    assert names == [".gitignore", "inner", "new", "notes"]
