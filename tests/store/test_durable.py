import errno
import itertools
import os
from pathlib import Path

import pytest
from store.killing import dies_at

from uwf_git.store.durable import (
    make_folder,
    remove,
    replace_file,
    sync_directories,
    write_temporary,
)


@pytest.mark.parametrize("durable", [False, True])
def test_a_temporary_file_has_a_name_of_its_own_in_a_folder_that_is_made(
    tmp_path: Path, *, durable: bool
) -> None:
    folder = tmp_path / "new" / "folder"
    paths = {
        write_temporary(str(folder), b"content", prefix="tmp_", durable=durable)
        for _count in range(3)
    }
    assert len(paths) == 3
    assert {Path(path).read_bytes() for path in paths} == {b"content"}
    assert all(path.startswith(f"{folder}/tmp_") for path in paths)


def test_what_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="no space left"):
        write_temporary(str(tmp_path), b"content", prefix="tmp_", durable=True)
    with pytest.raises(OSError, match="no space left"):
        replace_file(str(tmp_path / "file"), b"content")
    assert os.listdir(tmp_path) == []


def test_a_file_is_replaced_with_nothing_left_over(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(str(path), b"one")
    replace_file(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_put_in_place_leaves_the_old(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(str(tmp_path / "folder"), b"content")
    assert os.listdir(tmp_path) == ["folder"]


def test_the_temporary_file_may_lie_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    replace_file(str(tmp_path / "file"), b"content", temporary_in=str(elsewhere))
    assert os.listdir(elsewhere) == []
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "file"]


def test_a_replacement_killed_anywhere_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    found = set()
    for moment in itertools.count(1):
        replace_file(str(path), b"old")
        if not dies_at(moment, lambda: replace_file(str(path), b"new")):
            break
        found.add(path.read_bytes())
    assert found == {b"old", b"new"}


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    remove(str(path))
    remove(str(path))
    assert not path.exists()


@pytest.mark.parametrize("durable", [False, True])
def test_a_folder_is_made_once(tmp_path: Path, *, durable: bool) -> None:
    for _count in range(2):
        make_folder(str(tmp_path / "a" / "b"), durable=durable)
    assert (tmp_path / "a" / "b").is_dir()


def test_folders_are_put_on_the_disk_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    sync_directories([str(tmp_path), str(tmp_path)])
    assert synced == [tmp_path.stat().st_ino]


def test_content_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    rename, sync = os.replace, os.fsync

    def noted_rename(old: str, new: str) -> None:
        done.append("rename")
        rename(old, new)

    def noted_sync(descriptor: int) -> None:
        done.append("fsync")
        sync(descriptor)

    monkeypatch.setattr(os, "replace", noted_rename)
    monkeypatch.setattr(os, "fsync", noted_sync)
    replace_file(str(tmp_path / "file"), b"content")
    assert done == ["fsync", "rename", "fsync"]
