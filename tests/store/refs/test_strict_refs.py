"""What git says of HEAD, the files of refs, and packed-refs."""

import os
from pathlib import Path

import pytest
from fresh_store import fresh_store

from uwf_git.model.names import Oid
from uwf_git.store.refs import (
    BadRefFile,
    check_head,
    check_loose_refs,
    check_packed_refs,
)

A, B = Oid("a" * 40), Oid("b" * 40)
SORTED = "# pack-refs with: peeled fully-peeled sorted \n"
ROW = f"{A} refs/threads/x\n"


@pytest.fixture
def path() -> Path:
    return Path(fresh_store().path)


@pytest.mark.parametrize("content", ["ref: refs/heads/main\n", "ref:\trefs/heads/a/b", f"{A}\n"])
def test_a_head_at_a_branch_or_a_commit_is_right(path: Path, content: str) -> None:
    (path / "HEAD").write_text(content)
    assert list(check_head(str(path))) == []


@pytest.mark.parametrize(
    "content",
    ["", "\0" * 21, "ref: refs/threads/x\n", "ref: refs/heads/a..b\n", "ref: refs/heads/a\nmore\n"],
)
def test_any_other_head_is_wrong(path: Path, content: str) -> None:
    (path / "HEAD").write_text(content)
    (bad,) = check_head(str(path))
    assert bad.name == "HEAD"
    assert f"> {path}/HEAD" in bad.hint


@pytest.mark.parametrize("content", ["", ROW, SORTED, SORTED + ROW + f"^{B}\n{A} refs/threads/y\n"])
def test_what_git_packs_is_right(path: Path, content: str) -> None:
    if content:
        (path / "packed-refs").write_text(content)
    assert list(check_packed_refs(str(path))) == []


def test_what_git_would_not_pack_is_wrong(path: Path) -> None:
    for content, problem in [
        ("", "is empty"),
        (f"{SORTED[:-1]}{ROW}", "no header"),
        (f"{SORTED}garbage\n{ROW}", "names no ref: b'garbage'"),
        (f"{SORTED}{ROW}\n", "names no ref: b''"),
        (f"{SORTED}{ROW[:-1]}", "names no ref"),
        (f"{SORTED}{ROW[:-1]} {ROW}", "a name that git refuses"),
        (f"{SORTED}{ROW}{ROW}", "says that it is sorted"),
        (f"{SORTED}{ROW}{A} refs/archive/x\n", "says that it is sorted"),
    ]:
        (path / "packed-refs").write_text(content)
        (bad,) = check_packed_refs(str(path))
        assert problem in bad.problem


def test_each_file_of_a_ref_is_read_whatever_folder_it_is_in(path: Path) -> None:
    files = {"heads/main": "", "heads/x": A, "uwf/remotes/o/threads/y": "0", "heads/z.lock": ""}
    for name, content in files.items():
        (path / "refs" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "refs" / name).write_text(content)
    (path / "refs/heads/sym").write_text("ref: refs/heads/x\n")
    os.mkfifo(path / "refs/heads/pipe")

    found = dict(check_loose_refs(str(path)))

    assert found.pop("refs/heads/x") == A
    assert sorted(found) == ["refs/heads/main", "refs/heads/pipe", "refs/uwf/remotes/o/threads/y"]
    assert all(isinstance(each, BadRefFile) for each in found.values())


def test_ref_that_goes_while_refs_are_read_is_no_bad_ref(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (path / "refs" / name).write_text(f"{A}\n")
    found = check_loose_refs(str(path))
    assert next(found) == ("refs/a", A)
    (path / "refs" / "b").unlink()

    def is_file(place: str) -> bool:
        """Look, and let another process delete the ref."""
        is_there = os.path.exists(place)
        Path(place).unlink(missing_ok=True)
        return is_there

    monkeypatch.setattr(os.path, "isfile", is_file)
    assert list(found) == []
