"""True and false claims: a table on the disk, and one that only git can tell."""

import os
import shutil
import subprocess
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uwf_git.agentkit.adapters.check import (
    find_incompleteness,
    list_changed,
    list_claims,
    list_false_claims,
)

Prepare = Callable[[Path], object]

LONG_AGO = 1_000_000_000
"""When the files of the project were changed last, and committed, before the plan began."""

NFD = unicodedata.normalize("NFD", "é.txt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with files of long ago, without git."""
    for name in ("old.txt", "src/old.py", "文档/说明.md"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.utime(path, (LONG_AGO, LONG_AGO))
    return tmp_path / "project"


def false(project: Path, claim: str, *, since_s: float) -> list[str]:
    return list_false_claims(
        [("files_modified", claim)],
        workdir=str(project),
        since_ms=round(since_s * 1000),
        environ=os.environ,
    )


def copy_old(place: Path) -> None:
    shutil.copy2(place / "old.txt", place / "copy.txt")
    assert (place / "copy.txt").stat().st_mtime == LONG_AGO


ON_THE_DISK: list[tuple[Prepare, str]] = [
    (lambda place: (place / "new.txt").touch(), "new.txt"),
    (lambda place: (place / "new.txt").touch(), "./new.txt"),
    (lambda place: (place / "old.txt").write_text("changed"), "old.txt"),
    (copy_old, "copy.txt"),
    (lambda place: (place / "old.txt").rename(place / "moved.txt"), "moved.txt"),
    (lambda place: (place / "src/new.py").touch(), "src"),
    (lambda place: (place / "src/deep/er").mkdir(parents=True), "src/"),
    (lambda place: (place / "link").symlink_to("old.txt"), "link"),
    (lambda place: (place / "broken").symlink_to("nothing"), "broken"),
    (lambda place: (place / "文档/新.md").touch(), "文档/新.md"),
    (lambda place: (place / NFD).touch(), unicodedata.normalize("NFC", NFD)),
    (lambda place: (place / "é.txt").touch(), NFD),
]


@pytest.mark.parametrize(("prepare", "claim"), ON_THE_DISK)
def test_disk_bears_a_claim_out(project: Path, prepare: Prepare, claim: str) -> None:
    prepare(project)

    assert false(project, claim, since_s=time.time()) == []
    assert false(project, str(project / claim), since_s=time.time()) == []


FALSE = [
    ("old.txt", "has not changed since this plan began"),
    ("src", "has not changed since this plan began"),
    ("文档/说明.md", "has not changed since this plan began"),
    ("missing.txt", "does not exist, and git knows of no deletion"),
    ("old.txt/below", "does not exist, and git knows of no deletion"),
    ("old.txt (new)", "does not exist, and git knows of no deletion"),
    ("../elsewhere", "is not below the work directory"),
    ("/etc/hosts", "is not below the work directory"),
    ("", "is not below the work directory"),
    ("x\0y", "is not below the work directory"),
]


@pytest.mark.parametrize(("claim", "problem"), FALSE)
@pytest.mark.parametrize("has_git", [False, True])
def test_nothing_bears_a_claim_out(
    project: Path, claim: str, problem: str, *, has_git: bool
) -> None:
    if has_git:
        commit(project, LONG_AGO, "init", "--quiet")

    # The inodes are new, whatever the times of their content: so the plan begins later.
    (told,) = false(project, claim, since_s=time.time() + 3600)

    assert told == f"files_modified names {claim!r}, which {problem}"


def commit(place: Path, at: int, *words: str) -> None:
    """Run git, then commit everything with the date *at*."""
    date = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{at} +0000")
    for command in (words, ("add", "--all"), ("commit", "--quiet", "--allow-empty", "-mchange")):
        subprocess.run(["git", *command], cwd=place, env=os.environ | date, check=True)


def remove(place: Path, name: str, *, commits_at: int | None = None) -> None:
    (place / name).unlink()
    if commits_at is not None:
        commit(place, commits_at, "status", "--short")


IN_GIT: list[tuple[str, Prepare, str, bool]] = [
    ("deleted", lambda place: remove(place, "old.txt"), "old.txt", True),
    ("deleted in Chinese", lambda place: remove(place, "文档/说明.md"), "文档/说明.md", True),
    ("deleted with its folder", lambda place: shutil.rmtree(place / "src"), "src/old.py", True),
    ("deleted folder", lambda place: shutil.rmtree(place / "src"), "src", True),
    ("never there", lambda place: remove(place, "old.txt"), "src/missing.py", False),
    ("longer name", lambda place: remove(place, "old.txt"), "old", False),
    ("changed", lambda place: (place / "old.txt").write_text("changed"), "old.txt", True),
    ("staged", lambda place: commit(place, 2**31, "mv", "old.txt", "new.txt"), "old.txt", True),
    ("not touched", lambda place: remove(place, "old.txt"), "src/old.py", False),
]


@pytest.mark.parametrize(("prepare", "claim", "is_true"), [row[1:] for row in IN_GIT])
def test_git_bears_a_claim_out(
    project: Path, prepare: Prepare, claim: str, *, is_true: bool
) -> None:
    commit(project, LONG_AGO, "init", "--quiet")
    prepare(project)

    assert (false(project, claim, since_s=time.time() + 3600) == []) == is_true


def test_deletion_in_a_commit_counts_for_the_plan_of_that_time(project: Path) -> None:
    commit(project, LONG_AGO, "init", "--quiet")
    remove(project, "old.txt", commits_at=LONG_AGO + 100)

    assert false(project, "old.txt", since_s=LONG_AGO + 50) == []
    assert false(project, "old.txt", since_s=LONG_AGO + 102) == []
    assert false(project, "old.txt", since_s=LONG_AGO + 103) != []


def test_repository_that_began_in_this_plan(project: Path) -> None:
    commit(project, LONG_AGO, "init", "--quiet")
    later = LONG_AGO + 3600

    assert list_changed(str(project), LONG_AGO - 1, os.environ) == {
        "old.txt",
        "src/old.py",
        "文档/说明.md",
    }
    assert list_changed(str(project / "src"), LONG_AGO - 1, os.environ) == {"old.py"}
    assert list_changed(str(project), later, os.environ) == frozenset()


def test_git_of_the_caller_is_not_asked(project: Path, tmp_path: Path) -> None:
    """A hook of another repository has GIT_DIR set."""
    commit(project, LONG_AGO, "init", "--quiet")
    (project / "old.txt").unlink()
    elsewhere = {"GIT_DIR": str(tmp_path / "none"), "GIT_WORK_TREE": "/"}

    assert list_changed(str(project), LONG_AGO + 1, os.environ | elsewhere) == {"old.txt"}
    assert list_changed(str(project), LONG_AGO + 1, {"PATH": "/nowhere"}) == frozenset()


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"completed": True, "issues": ["one is left"]}, None),
        ({"completed": False, "issues": []}, "not completed: the report names no issues"),
        ({"completed": False}, "not completed: the report names no issues"),
        (
            {"completed": False, "issues": ["缺少密钥\n用户", "x"]},
            "not completed: 缺少密钥 用户; x",
        ),
        ({"completed": "true", "issues": "?"}, "not completed: the report names no issues"),
        ({"completed": 1}, "not completed: the report names no issues"),
        (None, "not completed: the report names no issues"),
    ],
)
def test_report_is_complete(meta: Any, problem: str | None) -> None:
    assert find_incompleteness(meta) == ([] if problem is None else [problem])


def test_claims_are_the_texts_of_two_fields() -> None:
    meta = {"files_created": ["a", 1], "files_modified": ["b"], "files_removed": ["c"]}

    assert list_claims(meta) == [("files_created", "a"), ("files_modified", "b")]
    assert list_claims({"files_created": "a"}) == []
    assert list_claims([]) == []
