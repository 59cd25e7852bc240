"""A git of ours in the repository of a project: what counts there, and what comes back."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from programs import write_program
from refusing import refuses

from uwf_git.store.durable import find_user_file
from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.fenced import (
    Kept,
    Place,
    fenced,
    find_place,
    keep_settings,
    list_uncommitted,
    read_settings,
    run_fenced,
)
from uwf_git.store.git.hook_files import SHIMS, check_hooks, find_unpinned, install_hooks
from uwf_git.store.git.program import ProgramFailed

Git = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """Return a repository with one commit, and a setting that it includes."""
    place = tmp_path / "project"
    git("init", "--quiet", str(place), cwd=tmp_path)
    (place / "file").write_text("x\n")
    git("add", "--all", cwd=place)
    git("commit", "--quiet", "-m", "x", cwd=place)
    (place / ".git" / "more").write_text('[filter "a.b"]\n\tclean = "say \\"x\\"; y\\\\n"\n')
    git("config", "include.path", "more", cwd=place)
    return place


def config(place: Place, *words: str) -> str:
    return os.fsdecode(run_fenced(os.environ, place, "config", *words).stdout).strip()


def test_settings_that_were_kept_count_for_their_repository_alone(
    project: Path, tmp_path: Path, git: Git
) -> None:
    kept, own = str(tmp_path / "of" / "thread"), str(project / ".git")
    keep_settings(kept, str(project))
    git("config", "include.path", "nowhere", cwd=project)
    git("config", "core.autocrlf", "input", cwd=project)
    git("config", "core.editor", "evil", cwd=project)

    at = Place(own, kept=read_settings(kept))

    assert config(at, "filter.a.b.clean") == 'say "x"; y\\n'
    assert config(at, "core.autocrlf") == "input"
    assert config(at, "core.editor") == config(at, "include.path") == ""
    assert config(at._replace(kept=Kept("elsewhere", at.kept.text)), "filter.a.b.clean") == ""
    assert read_settings(str(tmp_path / "none")) == read_settings(None) == Kept()
    for left in ("", "\0\0", "5", "[1]"):
        (tmp_path / "left").write_text(left)
        assert read_settings(str(tmp_path / "left")) == Kept()


def test_a_linked_worktree_keeps_the_settings_of_its_project(
    project: Path, tmp_path: Path, git: Git
) -> None:
    git("worktree", "add", "--quiet", "--detach", "../beside", cwd=project)
    keep_settings(str(tmp_path / "kept"), str(tmp_path / "beside"))
    assert read_settings(str(tmp_path / "kept")).repository == str(project / ".git")


def test_refs_and_objects_are_those_of_the_project(project: Path, git: Git) -> None:
    own = str(project / ".git")
    git("pack-refs", "--all", cwd=project)
    with fenced(os.environ, Place(own)) as environment:
        folder = Path(environment["GIT_DIR"])
        assert folder.parent == Path(find_user_file(own, os.environ, "git-dirs") or "")
        # As a filter keeps what it has taken out of a file.
        (folder / "large").mkdir()
        (folder / "large" / "x").touch()
    assert (project / ".git" / "large" / "x").exists()

    assert not run_fenced(os.environ, Place(own), "update-ref", "refs/uwf/x", "HEAD").status
    assert not run_fenced(os.environ, Place(own), "pack-refs", "--all").status
    assert not (project / ".git" / "packed-refs").is_symlink()
    assert git("rev-parse", "refs/uwf/x", cwd=project) == git("rev-parse", "HEAD", cwd=project)


def test_what_was_not_used_for_a_day_goes(project: Path) -> None:
    own = str(project / ".git")
    folder = Path(find_user_file(own, os.environ, "git-dirs") or "")
    for name in ("old", "young"):
        (folder / name / "info").mkdir(parents=True)
    os.utime(folder / "old", (1, 1))
    # As what another process takes away while the folder is listed.
    (folder / "going").symlink_to("gone")

    with fenced(os.environ, Place(own)) as environment:
        used = Path(environment["GIT_DIR"])
        os.utime(used, (1, 1))
    with fenced(os.environ, Place(own)) as environment:
        assert environment["GIT_DIR"] == str(used)

    assert sorted(os.listdir(folder)) == sorted([used.name, "going", "young"])
    assert used.stat().st_mtime > 1


def test_what_submodules_say_is_not_looked_for_is_not(
    project: Path, tmp_path: Path, git: Git
) -> None:
    files = ("-c", "protocol.file.allow=always")
    for name in ("one", "two", "three"):
        git(*files, "submodule", "--quiet", "add", str(project / ".git"), name, cwd=project)
    git("commit", "--quiet", "-m", "submodules", cwd=project)
    (project / "one" / "new").touch()
    (project / "two" / "file").write_text("other\n")
    (project / "three" / "file").write_text("other\n")
    # Which leads to the outer one again.
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},none", cwd=project)
    git("commit", "--quiet", "-m", "link", cwd=project)
    (project / "none" / ".git").mkdir(parents=True)
    place = find_place(os.environ, str(project))
    assert isinstance(place, Place)
    assert list_uncommitted(os.environ, place) == ["one", "three", "two"]

    (project / "none" / ".git").rmdir()
    git("config", "submodule.one.ignore", "untracked", cwd=project)
    git("config", "--file=.gitmodules", "submodule.two.ignore", "dirty", cwd=project)
    git("commit", "--quiet", "-am", "ignored", cwd=project)
    assert list_uncommitted(os.environ, place) == ["three"]


def test_what_is_no_repository_is_told(project: Path, tmp_path: Path) -> None:
    told = find_place(os.environ, str(tmp_path))
    assert isinstance(told, str)
    assert "not a git repository" in told
    # An agent may have made it.
    (project / "empty" / ".git").mkdir(parents=True)
    found = find_place(os.environ, str(project / "empty"))
    assert isinstance(found, Place)
    assert found.worktree == str(project)
    with pytest.raises(ProgramFailed, match="git was not started"):
        run_fenced(os.environ, Place(str(tmp_path / "gone")), "status")


HOOKS = Path(__file__).parents[3] / "hooks"
NO_CONFIG = GitConfig({})


@pytest.mark.parametrize("name", SHIMS)
def test_source_holds_the_same_text(name: str) -> None:
    assert (HOOKS / name).read_text() == SHIMS[name]
    assert os.access(HOOKS / name, os.X_OK)


@pytest.mark.parametrize("name", SHIMS)
def test_shim_is_a_program_for_any_shell(name: str) -> None:
    for shell in ("sh", "bash"):
        assert subprocess.run([shell, "-n", HOOKS / name], check=False).returncode == 0
    assert max(map(len, SHIMS[name].splitlines())) <= 100


def run(hook: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a hook with nothing but *environ*."""
    return subprocess.run(
        [hook], env=environ, cwd=hook.parent, input="", capture_output=True, text=True, check=False
    )


def uwf_in(folder: Path) -> str:
    """Write a program that prints its arguments, and return its path."""
    folder.mkdir()
    return write_program(folder / "uwf", 'echo "called $0 $*"\nexit 7')


@pytest.mark.parametrize("name", SHIMS)
def test_named_uwf_goes_before_that_on_the_path(name: str, tmp_path: Path) -> None:
    named, found = uwf_in(tmp_path / "a"), uwf_in(tmp_path / "b")

    both = run(HOOKS / name, UWF=named, PATH=os.path.dirname(found))
    one = run(HOOKS / name, PATH=os.path.dirname(found))

    assert (both.returncode, both.stdout) == (7, f"called {named} hook {name}\n")
    assert (one.returncode, one.stdout) == (7, f"called {found} hook {name}\n")


def test_push_is_refused_without_uwf(tmp_path: Path) -> None:
    ran = run(HOOKS / "pre-receive", PATH=str(tmp_path))

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: no uwf was found")


def test_missing_uwf_after_a_push_is_a_warning(tmp_path: Path) -> None:
    ran = run(HOOKS / "post-receive", PATH=str(tmp_path))

    assert ran.returncode == 0
    assert ran.stderr.startswith("warning: no uwf was found")


def test_interpreter_may_have_any_name(tmp_path: Path) -> None:
    python = tmp_path / 'it\'s "$HOME" `x` \\'
    write_program(python, 'echo "python $*"')

    path, _other = install_hooks(str(tmp_path), python=str(python))

    assert run(Path(path), PATH="").stdout == "python -P -m uwf_git hook pre-receive\n"


def test_module_in_the_repository_is_not_taken_for_ours(tmp_path: Path) -> None:
    path, _other = install_hooks(str(tmp_path), python=sys.executable)
    (tmp_path / "hooks" / "uwf_git").mkdir()
    (tmp_path / "hooks" / "uwf_git" / "__main__.py").write_text("print('hijacked')")

    assert run(Path(path), PATH="").stdout == ""


@pytest.mark.parametrize("content", ["#!/bin/sh\nexit 0\n", "", None])
def test_foreign_hook_is_refused(content: str | None, tmp_path: Path) -> None:
    hook = tmp_path / "hooks" / "post-receive"
    hook.parent.mkdir()
    if content is None:
        hook.symlink_to("/nowhere")
    else:
        hook.write_text(content)

    with refuses("foreign-hook", match="post-receive exists already") as refused:
        check_hooks(str(tmp_path), NO_CONFIG)

    assert "`uwf hook post-receive`" in str(refused.value.hint)


@pytest.mark.parametrize("target", ["others", "nowhere"])
def test_folder_that_is_a_link_is_refused(target: str, tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / "hooks").symlink_to(tmp_path / target)

    with refuses("hooks-linked", match="hooks is a symbolic link") as refused:
        check_hooks(str(tmp_path), GitConfig({"core.hookspath": ["hooks"]}))

    assert f"`rm {tmp_path}/hooks`" in str(refused.value.hint)


def test_empty_hooks_path_is_another_one(tmp_path: Path) -> None:
    with refuses("hooks-elsewhere"):
        check_hooks(str(tmp_path), GitConfig({"core.hookspath": [""]}))


def test_store_whose_hooks_git_does_not_run_is_told(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[core]\n\thooksPath = /etc/hooks\n")
    assert find_unpinned(str(tmp_path)) is None  # it has no hooks of ours

    install_hooks(str(tmp_path), python="")

    assert find_unpinned(str(tmp_path)) == (
        "its core.hooksPath is /etc/hooks, so git runs none of its hooks"
    )
