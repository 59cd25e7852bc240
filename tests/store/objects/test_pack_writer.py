import os
import zlib
from pathlib import Path

import pytest
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, Commit, ShaFile, Tree
from hypothesis import given
from hypothesis import strategies as st
from store.conftest import Git

from uwf_git.store.objects.pack_file import PackFolder
from uwf_git.store.objects.pack_writer import Entry, PackRights, build_entry, write_pack
from uwf_git.store.store import Store

FAST = PackRights(durable=False)


def folder_of(store: Store) -> Path:
    return Path(store.path, "objects", "pack")


def some() -> list[ShaFile]:
    """Return a blob, a tree and a commit."""
    blob, tree, commit = Blob.from_string(b"content"), Tree(), Commit()
    tree[b"file"] = (0o100644, blob.id)
    commit.tree = tree.id
    commit.author = commit.committer = b"a <b@c>"
    commit.author_time = commit.commit_time = 1
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"message\n"
    return [blob, tree, commit]


def entries_of(objects: list[ShaFile]) -> list[Entry]:
    return [build_entry(obj) for obj in objects]


def test_git_and_dulwich_and_we_read_the_pack(store: Store, git: Git) -> None:
    objects = some()
    new = write_pack(os.fspath(folder_of(store)), entries_of(objects), FAST, keep=False)
    git("verify-pack", new.path + ".idx", cwd=Path(store.path))
    git("fsck", "--strict", cwd=Path(store.path))
    theirs = DiskObjectStore(os.path.join(store.path, "objects"))
    for obj in objects:
        assert theirs[obj.id] == obj
        assert PackFolder(str(folder_of(store))).find(obj.id) == (
            obj.type_num,
            obj.as_raw_string(),
        )
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


def test_entries_are_copied_as_they_are(tmp_path: Path) -> None:
    blob = Blob.from_string(b"x" * 1000)
    entry = build_entry(blob)
    assert entry.crc == zlib.crc32(entry.content)
    ready = Entry(entry.oid, entry.crc, memoryview(entry.content))
    new = write_pack(str(tmp_path), [ready], FAST, keep=False)
    assert Path(new.path + ".pack").read_bytes()[12:-20] == entry.content


def test_equal_packs_have_names_of_their_own(tmp_path: Path) -> None:
    entries = entries_of(some())
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
    new = write_pack(str(tmp_path), entries_of(some()), FAST, keep=True)
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
    objects = some()
    new = write_pack(str(folder_of(store)), entries_of(objects), FAST, keep=True)
    assert PackFolder(str(folder_of(store))).find(objects[0].id) is not None
    assert sorted(path.suffix for path in folder_of(store).iterdir()) == [".idx", ".keep", ".pack"]
    assert new.keep is not None


@pytest.mark.parametrize("which", ["pack", "idx"])
def test_pack_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    rename = os.replace

    def refuse(old: str, new: str) -> None:
        if new.endswith(which):
            raise OSError("no space left on device")
        rename(old, new)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space left"):
        write_pack(str(tmp_path), entries_of(some()), FAST, keep=True)
    assert list(tmp_path.iterdir()) == []


def test_object_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="twice"):
        write_pack(str(tmp_path), entries_of([*some(), *some()]), FAST, keep=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("share", "mode"), [(False, 0o400), (True, 0o440)])
def test_group_reads_the_packs_of_a_shared_store(tmp_path: Path, mode: int, *, share: bool) -> None:
    before = os.umask(0o077)
    try:
        write_pack(str(tmp_path), entries_of(some()), PackRights(share=share), keep=False)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {mode}


def test_git_leaves_a_kept_pack_alone(store: Store, git: Git) -> None:
    objects = some()
    new = write_pack(str(folder_of(store)), entries_of(objects), FAST, keep=True)
    for command in ("repack -adq", "gc -q --prune=now"):
        git(*command.split(), cwd=Path(store.path))
        assert Path(new.path + ".pack").exists()
    assert new.keep is not None
    new.keep.release()
    git("repack", "-adq", cwd=Path(store.path))
    # Without it, the test above would show nothing.
    assert not Path(new.path + ".pack").exists()
