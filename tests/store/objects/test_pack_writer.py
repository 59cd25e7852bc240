import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, ShaFile
from dulwich.pack import load_pack_index
from hypothesis import given
from hypothesis import strategies as st
from refusing import raising
from store.conftest import Git
from store.killing import dies_at, in_child
from store.test_power_loss import history

from uwf_git.store.objects.pack_file import PackFolder
from uwf_git.store.objects.pack_writer import (
    Entry,
    KeepFile,
    PackRights,
    build_entry,
    format_index,
    is_kept,
    remove_dead_keep,
    write_pack,
)
from uwf_git.store.store import Store

FAST = PackRights(durable=False)


def folder_of(store: Store) -> Path:
    return Path(store.path, "objects", "pack")


def entries_of(objects: Sequence[ShaFile]) -> list[Entry]:
    return [build_entry(obj) for obj in objects]


def test_git_and_dulwich_and_we_read_the_pack(store: Store, git: Git) -> None:
    objects = history()
    new = write_pack(os.fspath(folder_of(store)), entries_of(objects), FAST, keep=False)
    git("verify-pack", new.path + ".idx", cwd=Path(store.path))
    git("fsck", "--strict", cwd=Path(store.path))
    theirs = DiskObjectStore(os.path.join(store.path, "objects"))
    for obj in objects:
        assert theirs[obj.id] == obj
        assert PackFolder(str(folder_of(store))).find(obj.id) == (obj.type_num, obj.as_raw_string())
    theirs.close()
    assert {path.suffix for path in folder_of(store).iterdir()} == {".pack", ".idx"}
    assert {path.stat().st_mode & 0o777 for path in folder_of(store).iterdir()} == {0o444}


@given(st.lists(st.binary(max_size=5000), min_size=1, max_size=5, unique=True))
def test_what_was_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    folder = str(tmp_path_factory.mktemp("pack"))
    blobs: list[ShaFile] = [Blob.from_string(content) for content in contents]
    write_pack(folder, entries_of(blobs), FAST, keep=False)
    packs = PackFolder(folder)
    assert [packs.find(blob.id) for blob in blobs] == [(3, content) for content in contents]


def test_equal_packs_have_names_of_their_own(tmp_path: Path) -> None:
    entries = entries_of(history())
    first, second = (write_pack(str(tmp_path), entries, FAST, keep=True) for _ in range(2))
    assert first.path != second.path
    assert Path(first.path + ".pack").read_bytes() == Path(second.path + ".pack").read_bytes()


def test_keep_is_there_before_the_pack_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool]] = []
    rename = os.replace

    def noted(old: str, new: str) -> None:
        seen.append((os.path.splitext(new)[1], os.path.exists(os.path.splitext(new)[0] + ".keep")))
        rename(old, new)

    monkeypatch.setattr(os, "replace", noted)
    new = write_pack(str(tmp_path), entries_of(history()), FAST, keep=True)
    assert seen == [(".pack", True), (".idx", True)]
    assert new.keep is not None
    new.keep.release()
    assert not Path(new.path + ".keep").exists()


@pytest.mark.parametrize("which", [".pack", ".idx"])
def test_files_that_prune_took_are_written_again(
    store: Store, git: Git, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    rename, pruned = os.replace, 0

    def prune_first(old: str, new: str) -> None:
        nonlocal pruned
        if new.endswith(which) and pruned < 4:
            pruned += 1
            git("prune", "--expire=now", cwd=Path(store.path))
            # Our own tries to rename it again must not find it.
            assert not os.path.exists(old)
            raise FileNotFoundError(old)
        rename(old, new)

    monkeypatch.setattr(os, "replace", prune_first)
    objects = history()
    new = write_pack(str(folder_of(store)), entries_of(objects), FAST, keep=True)
    assert PackFolder(str(folder_of(store))).find(objects[0].id) is not None
    assert sorted(path.suffix for path in folder_of(store).iterdir()) == [".idx", ".keep", ".pack"]
    assert new.keep is not None


def test_object_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="twice"):
        write_pack(str(tmp_path), entries_of([*history(), *history()]), FAST, keep=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("share", "mode"), [(False, 0o400), (True, 0o440)])
def test_group_reads_the_packs_of_a_shared_store(tmp_path: Path, mode: int, *, share: bool) -> None:
    before = os.umask(0o077)
    try:
        write_pack(str(tmp_path), entries_of(history()), PackRights(share=share), keep=False)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {mode}


DAY_S = 24 * 3600


@pytest.fixture
def pack(tmp_path: Path) -> str:
    return str(tmp_path / "pack-0123")


def test_keep_of_the_living_is_not_swept(pack: str) -> None:
    kept = KeepFile(pack, share=False)
    assert not remove_dead_keep(pack + ".keep")
    assert in_child(lambda: remove_dead_keep(pack + ".keep")) is False
    kept.release()


def test_keep_of_a_writer_killed_at_any_moment_is_swept_or_says_nothing(pack: str) -> None:
    for moment in itertools.count(1):
        path = f"{pack}{moment}"
        if not dies_at(moment, lambda: KeepFile(path, share=False).release()):  # noqa: B023 - at once
            break
        # Killed before it could write its name, it leaves an empty file, which may be anybody's.
        says_nothing = Path(path + ".keep").exists() and not os.path.getsize(path + ".keep")
        assert remove_dead_keep(path + ".keep") or says_nothing or not is_kept(path)
        assert says_nothing or not is_kept(path)
    assert moment > 3


def test_keep_that_is_forgotten_is_removed(pack: str) -> None:
    kept = KeepFile(pack, share=False)
    opened = len(os.listdir("/proc/self/fd"))
    del kept
    assert not is_kept(pack)
    assert len(os.listdir("/proc/self/fd")) == opened - 1


@pytest.mark.parametrize(
    "content", ["", "fetch-pack 4711 on here\n", "[]", "{}", '{"pid": 1}', "\0"]
)
def test_keep_of_git_and_of_people_is_never_swept(pack: str, content: str) -> None:
    path = Path(pack + ".keep")
    path.write_text(content)
    os.utime(path, (0, 0))
    assert not remove_dead_keep(str(path))
    assert path.exists()


@pytest.mark.parametrize(("age_s", "is_swept"), [(DAY_S - 600, False), (DAY_S + 600, True)])
def test_keep_of_another_machine_is_swept_after_a_day(
    pack: str, age_s: int, *, is_swept: bool
) -> None:
    path = Path(pack + ".keep")
    path.write_text('{"writer": "uwf", "pid": 1, "start": 2, "host": "elsewhere"}')
    os.utime(path, (time.time() - age_s,) * 2)
    assert remove_dead_keep(str(path)) is is_swept
    assert path.exists() is not is_swept


def test_what_is_no_keep_is_left_alone(pack: str, tmp_path: Path) -> None:
    assert not remove_dead_keep(pack + ".keep")
    assert not is_kept(pack)
    Path(pack + ".keep").symlink_to(tmp_path)
    assert not remove_dead_keep(pack + ".keep")
    assert is_kept(pack)


def test_keep_of_a_shared_store_can_be_swept_by_the_group(pack: str) -> None:
    before = os.umask(0o077)
    try:
        kept = KeepFile(pack, share=True)
    finally:
        os.umask(before)
    assert os.stat(pack + ".keep").st_mode & 0o777 == 0o660
    kept.release()


def test_keep_that_cannot_be_made_leaves_nothing(
    pack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", raising(OSError("no space left on device")))
    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="no space"):
        KeepFile(pack, share=False)
    assert not is_kept(pack)
    assert len(os.listdir("/proc/self/fd")) == opened


def test_offsets_of_packs_above_two_gigabytes_are_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "pack.idx")
    offsets = [12, 1 << 31, 5, 7_000_000_000]
    names = [bytes([first]) * 20 for first in (9, 3, 255, 0)]

    parts = format_index(
        names=b"".join(names), crcs=[1, 2, 3, 4], offsets=offsets, pack_sum=b"s" * 20
    )
    Path(path).write_bytes(b"".join(parts))

    index = load_pack_index(path, DEFAULT_OBJECT_FORMAT)
    index.check()
    found = [(name, offset, crc) for name, offset, crc in index.iterentries()]
    assert found == sorted(zip(names, offsets, [1, 2, 3, 4], strict=True))
    assert index.get_pack_checksum() == b"s" * 20
    index.close()
