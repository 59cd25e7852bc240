import os
from pathlib import Path

import pytest
from dulwich.objects import Blob
from store.conftest import Git
from store.small_packs import pack_folder, write_small_pack

from uwf_git.store.gc.tidy import read_whole_entries
from uwf_git.store.objects.pack_writer import build_entry
from uwf_git.store.store import Store

BLOBS = [Blob.from_string(b"%d" % number * 50) for number in range(20)]


def test_entries_are_read_as_they_were_written(store: Store) -> None:
    path = write_small_pack(store, BLOBS)
    assert read_whole_entries(path) == [build_entry(blob) for blob in BLOBS]


@pytest.mark.parametrize("ending", [".pack", ".idx"])
def test_what_is_gone_is_not_read(store: Store, ending: str) -> None:
    path = write_small_pack(store, BLOBS)
    Path(path + ending).unlink()
    assert read_whole_entries(path) is None


@pytest.mark.parametrize("ending", [".pack", ".idx"])
def test_any_flipped_bit_is_noticed(store: Store, ending: str) -> None:
    path = write_small_pack(store, BLOBS[:2])
    file = Path(path + ending)
    whole = file.read_bytes()
    file.chmod(0o644)
    for at in range(0, len(whole), 7):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert read_whole_entries(path) is None, at
    for size in (0, 1, 11, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert read_whole_entries(path) is None, size
    file.write_bytes(whole)
    assert read_whole_entries(path) is not None


def test_the_index_of_another_pack_is_noticed(store: Store) -> None:
    one, other = write_small_pack(store, BLOBS[:5]), write_small_pack(store, BLOBS[5:10])
    os.replace(f"{one}.idx", f"{other}.idx")
    assert read_whole_entries(other) is None


def test_a_pack_with_a_delta_is_left_to_git(store: Store, git: Git) -> None:
    text = os.urandom(500).hex()
    for number in range(5):
        git("hash-object", "-w", "--stdin", stdin=f"{text}{number}", cwd=Path(store.path))
    oids = git(
        "cat-file", "--batch-check=%(objectname)", "--batch-all-objects", cwd=Path(store.path)
    )
    name = f"{pack_folder(store)}/pack"
    for options, is_read in (([], False), (["--window=0", "--no-reuse-delta"], True)):
        made = git("pack-objects", "-q", *options, name, stdin=oids, cwd=Path(store.path))
        assert (read_whole_entries(f"{name}-{made.strip()}") is not None) is is_read
