import os
from pathlib import Path

import pytest
from refusing import refuses
from store.conftest import Git

from uwf_git.store.store import NotAStore, create_store, default_path, find_bare_around, find_store


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the home of a user without a store."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path, git: Git) -> Path:
    """Return a repository that says that it is a store."""
    path = tmp_path / "project"
    (path / "deep" / "down").mkdir(parents=True)
    git("init", "--quiet", cwd=path)
    git("config", "uwf.store", "true", cwd=path)
    return path


def found(repo: str | None, cwd: Path, home: Path | None, *, create: bool = False) -> str:
    environ = {} if home is None else {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    return find_store(repo, str(cwd), environ, create=create).path


def test_what_was_named_comes_first(tmp_path: Path, home: Path, project: Path) -> None:
    named = create_store(str(tmp_path / "named.git")).path
    assert found(named, project, home) == named
    assert found("../named.git", project, home) == named
    assert found(".", project / ".git", home) == str(project / ".git")


def test_the_home_of_the_user_may_be_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    path = create_store(str(home / "mine.git")).path
    assert found("~/mine.git", home, home) == path


@pytest.mark.parametrize("below", [".", "deep", "deep/down", ".git", ".git/objects"])
def test_the_enclosing_store_comes_next(project: Path, home: Path, below: str) -> None:
    assert found(None, project / below, home) == str(project / ".git")


def test_a_repository_that_does_not_say_so_is_passed_over(
    project: Path, home: Path, git: Git
) -> None:
    inner = project / "deep" / "down"
    git("init", "--quiet", cwd=inner)
    assert found(None, inner, home) == str(project / ".git")
    git("config", "uwf.store", "false", cwd=project)
    with pytest.raises(NotAStore, match=r"\.uwf/store\.git does not exist yet"):
        found(None, inner, home)


@pytest.mark.parametrize("below", ["vendor/lib", "vendor/lib/objects"])
def test_a_bare_repository_in_a_checkout_is_passed_over(
    project: Path, home: Path, git: Git, below: str
) -> None:
    """Its files can come with any commit, and its config names commands."""
    git("init", "--quiet", "--bare", "vendor/lib", cwd=project)
    git("config", "uwf.store", "true", cwd=project / "vendor" / "lib")

    assert found(None, project / below, home) == str(project / ".git")
    assert find_bare_around(str(project / below)) == str(project / "vendor" / "lib")
    git("config", "uwf.store", "false", cwd=project)
    assert found(None, project / below, home, create=True) == str(home / ".uwf" / "store.git")


def test_a_bare_store_is_used_only_if_it_is_named(home: Path, tmp_path: Path, git: Git) -> None:
    store = create_store(str(tmp_path / "bare.git")).path
    git("config", "uwf.store", "true", cwd=store)

    assert found(".", Path(store), home) == store
    assert found(None, Path(store), home, create=True) == str(home / ".uwf" / "store.git")


def test_nothing_bare_is_around_a_work_tree(project: Path) -> None:
    for below in (".", "deep", ".git", ".git/objects"):
        assert find_bare_around(str(project / below)) is None


@pytest.mark.parametrize("value", ["{0}/mine.git", "~/mine.git", "mine.git"])
def test_the_user_may_name_the_default_store(home: Path, git: Git, value: str) -> None:
    git("config", "--file", home / ".gitconfig", "uwf.repo", value.format(home), cwd=home)

    assert found(None, home, home, create=True) == str(home / "mine.git")
    assert found(None, home, home) == str(home / "mine.git")


def test_a_store_does_not_name_another(project: Path, home: Path, git: Git, tmp_path: Path) -> None:
    git("config", "uwf.repo", tmp_path / "other.git", cwd=project)

    assert found(None, project, home) == str(project / ".git")


def test_the_default_store_is_made_when_it_is_wanted(home: Path) -> None:
    path = str(home / ".uwf" / "store.git")
    with pytest.raises(NotAStore):
        found(None, home, home)
    assert not (home / ".uwf").exists()
    assert found(None, home, home, create=True) == path
    assert found(None, home, home) == default_path({"HOME": str(home)}) == path


def test_a_named_store_is_never_made_by_accident(tmp_path: Path, home: Path) -> None:
    with pytest.raises(NotAStore, match="typo does not exist"):
        found("typo", tmp_path, home, create=True)
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_a_home_there_is_no_default_store(tmp_path: Path, environ: dict[str, str]) -> None:
    with refuses("no-home") as caught:
        find_store(None, str(tmp_path), environ, create=True)
    assert caught.value.exit_status == 2


def test_a_store_of_another_kind_is_refused(project: Path, home: Path, git: Git) -> None:
    git("config", "extensions.objectFormat", "sha256", cwd=project)
    with refuses("unsupported-repository"):
        found(None, project, home)


@pytest.fixture
def somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend to be a user that owns nothing here."""
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)


def test_enclosing_store_of_another_user_is_refused(
    project: Path, home: Path, somebody_else: None
) -> None:
    """Its config says which commands may run as agents."""
    with refuses("foreign-repository") as caught:
        found(None, project, home)
    assert str(project / ".git") in caught.value.message
    assert "--repo" in str(caught.value.hint)
    assert caught.value.exit_status == 1


def test_git_file_of_another_user_is_refused(
    tmp_path: Path, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that all may write, such as /tmp, it would lead into any store of the user."""
    place = tmp_path / "everyone"
    place.mkdir()
    (place / ".git").write_text(f"gitdir: {project}/.git\n")
    lstat = os.lstat

    def lstat_of_another(path: str) -> os.stat_result:
        ours = lstat(path)
        return os.stat_result((*ours[:4], ours.st_uid + (path == f"{place}/.git"), *ours[5:]))

    monkeypatch.setattr(os, "lstat", lstat_of_another)

    assert found(None, project, home) == str(project / ".git")
    with refuses("foreign-repository"):
        found(None, place, home)


def test_enclosing_repository_without_the_setting_is_ignored(
    project: Path, home: Path, git: Git, somebody_else: None
) -> None:
    git("config", "uwf.store", "false", cwd=project)
    assert found(None, project, home, create=True) == str(home / ".uwf" / "store.git")


def test_store_of_another_user_may_be_named(project: Path, home: Path, somebody_else: None) -> None:
    assert found(str(project), project, home) == str(project / ".git")


@pytest.mark.parametrize("safe", ["*", "work tree", "git directory", "elsewhere"])
def test_safe_directory_is_trusted(
    project: Path, home: Path, git: Git, somebody_else: None, safe: str
) -> None:
    values = {"work tree": str(project), "git directory": str(project / ".git")}
    value = values.get(safe, safe)
    git("config", "--file", home / ".gitconfig", "safe.directory", value, cwd=home)
    if safe == "elsewhere":
        with refuses("foreign-repository"):
            found(None, project, home)
    else:
        assert found(None, project, home) == str(project / ".git")
