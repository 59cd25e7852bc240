"""Nothing that an agent left in a repository runs while uwf runs git there, by no setting."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from commands.worktree.project import PAIR, begin_project, children, commit_all, write_all
from commands.world import Git, World
from planting import ATTRIBUTES, WAYS, Planted
from refusing import refuses

from uwf_git.agentkit.adapters.check import list_changed
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.commands.worktree.record import Worktree
from uwf_git.commands.worktree.repository import find_origin
from uwf_git.commands.worktree.worktrees import make_worktree
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.store.git.program import ProgramFailed
from uwf_git.store.threads.local_files import settings_file

FILES = ("-c", "protocol.file.allow=always")


class Place(NamedTuple):
    """A project with the submodule `lib` and the repository `inner`, and a worktree that has both.

    In each of them is something that git has to read.
    """

    world: World
    git: Git
    project: Path
    apart: Worktree


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path / "planted")


@pytest.fixture
def place(world: World, git: Git, tmp_path: Path) -> Place:
    library = tmp_path / "library"
    git("init", "--quiet", str(library), cwd=tmp_path)
    (library / "text").write_text("theirs\n")
    commit_all(library, git)
    begin_project(world, git)
    git(*FILES, "submodule", "--quiet", "add", str(library), "lib", cwd=world.place)
    commit_all(world.place, git)
    apart = tmp_path / "apart"
    git("worktree", "add", "--quiet", "--detach", str(apart), cwd=world.place)
    git(*FILES, "submodule", "--quiet", "update", "--init", cwd=apart)
    for top in (world.place, apart):
        for tree in (top / "lib", top, top / "inner"):
            git("init", "--quiet", str(tree), cwd=top)
            (tree / "text").write_text("begun\n")
            commit_all(tree, git)
        (top / "inner" / "text").write_text("stashed\n")
        git("stash", "--quiet", cwd=top / "inner")
        sign_stash(top / "inner", git)
        for tree in (top, top / "lib", top / "inner"):
            (tree / "text").write_text("mine.\n")
            (tree / "new.slow").write_text("mine.\n")
            (tree / ".gitattributes").write_text(ATTRIBUTES)
    base = git("rev-parse", "HEAD", cwd=apart).strip()
    admin = git("rev-parse", "--absolute-git-dir", cwd=apart).strip()
    own, path = str(world.place / ".git"), str(apart)
    worktree = Worktree(
        world.new_id(), world.new_id(), str(world.place), own, base, path, path, admin
    )
    return Place(world, git, world.place, worktree)


def sign_stash(repository: Path, git: Git) -> None:
    """Replace the stash by one that has a signature, which git can show."""
    about, blank, message = git("cat-file", "commit", "stash", cwd=repository).partition("\n\n")
    lines = ("-----BEGIN PGP SIGNATURE-----", "", "x", "-----END PGP SIGNATURE-----")
    signed = repository.parent / "signed"
    signed.write_text("\n ".join((f"{about}\ngpgsig {lines[0]}", *lines[1:])) + blank + message)
    commit = git("hash-object", "-t", "commit", "-w", str(signed), cwd=repository).strip()
    signed.unlink()
    git("update-ref", "refs/stash", commit, cwd=repository)


def git_dirs(place: Place) -> dict[str, Path]:
    """Return the git directories in which an agent could write."""
    admin, apart = Path(place.apart.git_dir), Path(place.apart.path)
    return {
        "project": place.project / ".git",
        "lib": place.project / ".git" / "modules" / "lib",
        "inner": place.project / "inner" / ".git",
        "apart": admin,
        "apart-lib": admin / "modules" / "lib",
        "apart-inner": apart / "inner" / ".git",
    }


def ask_origin(place: Place) -> None:
    with refuses("not-clean") as raised:
        find_origin(os.environ, str(place.project), at="", store="/s")
    assert {"text", "inner/", "lib"} <= set(raised.value.facts["changed"])


def ask_changes(place: Place) -> None:
    assert list_changed(str(place.project), 2**33, os.environ) == {"text", "lib"}
    assert list_changed(str(place.project / "lib"), 2**33, os.environ) == {"text"}


def keep(place: Place) -> None:
    apart, git = place.apart, place.git
    tree, kept = write_all(apart)
    assert {each.path for each in kept} == {"lib", "inner"}
    for each in kept:
        found = git("--git-dir", each.repository, "show", f"{each.ref}:text", cwd=place.project)
        assert found == "mine.\n"
    assert git("cat-file", "blob", f"{tree}:new.slow", cwd=place.project) == "mine.\n"


ACTS: list[Callable[[Place], None]] = [ask_origin, ask_changes, keep]


@pytest.mark.parametrize("act", ACTS)
def test_no_setting_runs(place: Place, planted: Planted, act: Callable[[Place], None]) -> None:
    """By each way into the config of a repository, and of one inside another."""
    ways = WAYS[ACTS.index(act) :] + WAYS
    for (where, git_dir), way in zip(git_dirs(place).items(), ways, strict=False):
        planted.plant(git_dir, where, way=way)

    act(place)

    assert planted.ran() == []


def test_what_is_planted_between_look_and_run_does_not_run_either(
    place: Place, planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that an agent left writes at each start of git, and makes a repository inside."""
    lines, lib = [], Path(place.apart.path, "lib")
    for where, git_dir in git_dirs(place).items():
        own = (git_dir / "config").read_text() if (git_dir / "config").exists() else ""
        planted.plant(git_dir, where)
        (git_dir / "config").rename(git_dir / "evil")
        (git_dir / "config").write_text(own)
        lines.append(f"cp '{git_dir}/evil' '{git_dir}/config'")
    (lib / ".git").rename(lib / "hidden")
    lines.append(f"case \" $* \" in *' add '*) cp '{lib}/hidden' '{lib}/.git';; esac")
    program = planted.marks.parent / "path" / "git"
    program.parent.mkdir()
    program.write_text("\n".join(["#!/bin/sh", *lines, f'exec {shutil.which("git")} "$@"', ""]))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    ask_origin(place)
    write_all(place.apart)

    assert "evil" in (place.project / ".git" / "config").read_text()
    assert planted.ran() == []


def test_nobody_fetches_what_is_missing(place: Place, planted: Planted) -> None:
    inner = Path(place.apart.path, "inner")
    commit = place.git("rev-parse", "stash^", cwd=inner).strip()
    planted.plant(inner / ".git", "inner")
    (inner / ".git" / "objects" / commit[:2] / commit[2:]).unlink()

    with pytest.raises(ProgramFailed):
        keep(place)

    assert planted.ran() == []


def lead_elsewhere(project: Path, evil: Path) -> None:
    shutil.rmtree(project / ".git")
    (project / ".git").write_text(f"gitdir: {evil}\n")


def share(project: Path, evil: Path) -> None:
    (project / ".git" / "commondir").write_text(f"{evil}\n")


def borrow(project: Path, evil: Path) -> None:
    shutil.rmtree(project / ".git" / "objects" / "pack")
    (project / ".git" / "objects" / "info" / "alternates").write_text(f"{evil}/objects\n")


def move(project: Path, _evil: Path) -> None:
    with (project / ".git" / "config").open("a") as config:
        config.write("[core]\n\tworktree = /\n")


def test_repositories_that_lead_elsewhere_run_nothing(place: Place, planted: Planted) -> None:
    evil = place.project.parent / "evil"
    shutil.copytree(place.project / ".git", evil)
    planted.plant(evil, "elsewhere")
    planted.plant(place.project / ".git", "project")
    for lead in (lead_elsewhere, share, borrow, move):
        project = place.project.parent / lead.__name__
        shutil.copytree(place.project, project)
        lead(project, evil)

        with pytest.raises(UwfError):
            find_origin(os.environ, str(project), at="", store="/s")
        list_changed(str(project), 2**33, os.environ)

        assert planted.ran() == []
    assert list_changed(str(project), 2**33, os.environ) == {"text", "lib"}


KEEP = 'd=$(git rev-parse --git-common-dir)/large; mkdir -p "$d"; tee "$d/file" | sed s/^/kept-/'


def test_filters_of_the_user_and_of_the_project_at_the_beginning_stay(
    world: World, git: Git, planted: Planted
) -> None:
    filters = {
        "kept.clean": KEEP,
        "kept.smudge": "sed s/^kept-//",
        "user.clean": "sed s/^/user-/",
        "user.smudge": "sed s/^user-//",
    }
    git("init", "--quiet", cwd=world.place)
    for name, command in filters.items():
        scope = "--global" if name.startswith("user") else "--local"
        git("config", scope, f"filter.{name}", command, cwd=world.place)
    attributes = f"{ATTRIBUTES}*.kept filter=kept\n*.user filter=user\n"
    (world.place / ".gitattributes").write_text(attributes)
    for name in ("a.kept", "a.user"):
        (world.place / name).write_text("text\n")
    begin_project(world, git)
    shutil.rmtree(world.place / ".git" / "large")
    thread = world.begun(PAIR)
    # An agent of the thread does this before it splits.
    planted.plant(world.place / ".git", "project")
    (world.place / ".git" / "info" / "attributes").unlink()
    git("config", "filter.kept.clean", str(planted.marks / "no program"), cwd=world.place)
    os.utime(world.place / "a.kept", (1, 1))
    turn = {"UWF_REPO": world.store.path, "UWF_THREAD_ID": thread}
    assert list_changed(str(world.place), 2**33, os.environ) == {"a.kept"}
    assert list_changed(str(world.place), 2**33, os.environ | turn) == frozenset()
    world.step(thread)
    begin_branch(world.store, world.snapshot(thread), 0)
    one, _ = children(world.snapshot(thread))
    environ = world.caller.environ
    made = make_worktree(world.store, environ, world.snapshot(one), source=str(world.place))
    texts = {name: Path(made.workdir, name).read_text() for name in ("a.kept", "a.user", "notes")}
    (Path(made.workdir) / "b.kept").write_text("new\n")
    (Path(made.workdir) / "b.user").write_text("new\n")

    world.kill(one, reason="enough")

    assert texts == {"a.kept": "text\n", "a.user": "text\n", "notes": "begun\n"}
    shown = ("--git-dir", str(world.place / ".git"), "cat-file", "blob")
    for name, text in {"b.kept": "kept-new\n", "b.user": "user-new\n"}.items():
        assert git(*shown, f"refs/uwf/work/{one}:{name}", cwd=world.place) == text
    assert (world.place / ".git" / "large" / "file").read_text() == "new\n"
    assert not Path(made.path).exists()
    assert planted.ran() == []
    check_that_settings_go_with(world, thread)


def check_that_settings_go_with(world: World, thread: ThreadId) -> None:
    world.kill(thread)
    kept = settings_file(world.store, thread)
    assert kept is not None
    assert Path(kept).exists()
    world.remove(thread)
    assert not Path(kept).exists()
