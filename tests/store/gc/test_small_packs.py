"""Which packs are told apart: those of steps, and what others rely on."""

import os
from pathlib import Path

import pytest
from dulwich.objects import Blob
from store.conftest import Git
from store.small_packs import (
    names_in,
    pack_folder,
    packs_in,
    write_blobs,
    write_small_pack,
)

from uwf_git.store.gc.packing import (
    LARGE_BYTES,
    count_unpacked,
    has_many_packs,
    is_packed,
    list_own_packs,
    list_small_packs,
    remove_packs,
)
from uwf_git.store.store import Store


def stems(store: Store) -> list[str]:
    return [os.path.basename(pack.path) for pack in list_small_packs(pack_folder(store))]


def test_packs_of_steps_are_listed_smallest_first(store: Store) -> None:
    paths = [write_small_pack(store, [], size_bytes=size) for size in (900, 100, 500)]
    found = list_small_packs(pack_folder(store))
    assert [pack.path for pack in found] == [paths[1], paths[2], paths[0]]
    assert [pack.objects for pack in found] == [1, 1, 1]
    for pack in found:
        left = os.stat(f"{pack.path}.pack")
        assert (pack.size_bytes, pack.mtime_ns) == (left.st_size, left.st_mtime_ns)


def test_a_folder_that_is_missing_has_none(store: Store) -> None:
    assert list_small_packs(f"{store.path}/none") == []
    assert count_unpacked(f"{store.path}/none", up_to=0) == 0
    assert not has_many_packs(f"{store.path}/none")


@pytest.mark.parametrize("ending", ["keep", "rev", "bitmap", "mtimes", "promisor", "new"])
def test_what_has_a_file_of_git_beside_it_is_left_alone(store: Store, ending: str) -> None:
    write_blobs(store, 2)
    first, other = packs_in(store)
    Path(pack_folder(store), f"{first}.{ending}").touch()
    assert stems(store) == [other]
    assert count_unpacked(pack_folder(store), up_to=0) == 1


def test_a_pack_without_an_index_is_none(store: Store) -> None:
    Path(f"{write_small_pack(store, [Blob.from_string(b'x')])}.idx").unlink()
    assert stems(store) == []


def test_what_git_packed_is_not_a_steps(store: Store, git: Git) -> None:
    write_blobs(store, 3, each=5)
    oids = git("cat-file", "--batch-check=%(objectname)", "--batch-all-objects", cwd=at(store))
    git("pack-objects", "-q", f"{pack_folder(store)}/pack", stdin=oids, cwd=at(store))
    assert len(packs_in(store)) == 4
    assert len(stems(store)) == 3
    assert count_unpacked(pack_folder(store), up_to=14) == 15
    (by_git,) = set(packs_in(store)) - set(stems(store))
    assert is_packed(f"{pack_folder(store)}/{by_git}")


def test_beyond_the_limit_it_is_told_only_that_there_are_more(store: Store, git: Git) -> None:
    write_blobs(store, 4, each=3)
    assert count_unpacked(pack_folder(store), up_to=5) > 5
    git("repack", "-adq", cwd=at(store))


def test_packs_in_the_multi_pack_index_of_git_are_gits(store: Store, git: Git) -> None:
    write_blobs(store, 3)
    git("multi-pack-index", "write", cwd=at(store))
    write_blobs(store, 2)
    packs = list_own_packs(pack_folder(store))
    assert len(packs) == 2
    git("multi-pack-index", "write", cwd=at(store))
    remove_packs(packs)
    assert len(packs_in(store)) == 5
    git("multi-pack-index", "verify", cwd=at(store))


@pytest.mark.parametrize("content", [b"", b"MIDX", b"MIDX\1\1\7\0\0\0\0\3", os.urandom(200)])
def test_a_multi_pack_index_that_is_none_names_nothing(store: Store, content: bytes) -> None:
    write_blobs(store, 2)
    Path(pack_folder(store), "multi-pack-index").write_bytes(content)
    assert len(stems(store)) == 2


def test_what_is_kept_since_the_listing_is_not_removed(store: Store) -> None:
    write_blobs(store, 2)
    first, other = list_own_packs(pack_folder(store))
    Path(f"{first.path}.keep").touch()
    remove_packs([first, other])
    assert names_in(store) == [
        f"{os.path.basename(first.path)}.{ending}" for ending in ("idx", "keep", "pack")
    ]


def test_a_large_pack_is_not_copied_any_more(store: Store) -> None:
    path = write_small_pack(store, [Blob.from_string(b"x")])
    os.truncate(f"{path}.pack", LARGE_BYTES - 1)
    assert stems(store) == [os.path.basename(path)]
    os.truncate(f"{path}.pack", LARGE_BYTES)
    assert stems(store) == []
    assert [pack.path for pack in list_own_packs(pack_folder(store))] == [path]


def at(store: Store) -> Path:
    return Path(store.path)
