import os
from collections.abc import Callable
from pathlib import Path

from refusing import refuses

from uwf_git.commands.admin.init import init_store

Git = Callable[..., str]


def test_new_store_is_what_git_would_make(tmp_path: Path, git: Git) -> None:
    made = init_store("new.git", str(tmp_path), os.environ)

    assert made.created
    assert made.store.path == str(tmp_path / "new.git")
    assert git("rev-parse", "--is-bare-repository", cwd=tmp_path / "new.git") == "true\n"
    assert git("config", "uwf.store", cwd=tmp_path / "new.git") == "true\n"
    assert git("fsck", "--strict", cwd=tmp_path / "new.git") == ""


def test_project_keeps_everything_it_has(tmp_path: Path, git: Git) -> None:
    git("init", "-q", cwd=tmp_path)
    (tmp_path / "file").write_text("x")
    git("add", "file", cwd=tmp_path)
    git("commit", "-qm", "one", cwd=tmp_path)
    before = git("rev-parse", "HEAD", cwd=tmp_path)

    made = init_store(".", str(tmp_path), os.environ)

    assert not made.created
    assert made.store.path == str(tmp_path / ".git")
    assert git("rev-parse", "HEAD", cwd=tmp_path) == before
    assert git("status", "--porcelain", cwd=tmp_path) == ""


def test_repository_of_another_kind_is_refused_and_stays_as_it_is(tmp_path: Path, git: Git) -> None:
    git("init", "-q", "--object-format=sha256", cwd=tmp_path)
    config = (tmp_path / ".git" / "config").read_bytes()

    with refuses("unsupported-repository", match="sha256"):
        init_store(".", str(tmp_path), os.environ)

    assert (tmp_path / ".git" / "config").read_bytes() == config


def test_killed_init_is_completed(tmp_path: Path) -> None:
    (tmp_path / "objects" / "pack").mkdir(parents=True)
    (tmp_path / "config").write_text("")
    (tmp_path / ".tmp_0123456789abcdef").write_text("")

    assert init_store(".", str(tmp_path), os.environ).created
