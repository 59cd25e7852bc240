"""Packs come and go under a reader: it never misses an object that one of them has."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile
from store.conftest import Git

from uwf_git.store.gc.tidy import unite_packs
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_file import Pack, PackFolder, open_pack_folder
from uwf_git.store.objects.pack_writer import PackRights, build_entry, write_pack
from uwf_git.store.store import Store, create_store

FAST = PackRights(durable=False)
LONG_AGO_NS = 1_000_000_000
HOUR_NS = 3600 * 1_000_000_000


def some(count: int, text: str = "content") -> list[ShaFile]:
    return [Blob.from_string(f"{text} {number}".encode()) for number in range(count)]


def write(folder: Path, *objects: ShaFile) -> str:
    """Write a pack, and return its path without ending."""
    return write_pack(str(folder), [build_entry(obj) for obj in objects], FAST, keep=False).path


def remove(pack: str) -> None:
    for ending in (".idx", ".pack"):
        Path(pack + ending).unlink()


def has(folder: PackFolder, *objects: ShaFile) -> bool:
    return all(folder.find(obj.id) == (obj.type_num, obj.as_raw_string()) for obj in objects)


def test_packs_are_asked_until_one_has_the_object(tmp_path: Path) -> None:
    objects = some(20)
    for obj in objects:
        write(tmp_path, obj)
    folder = PackFolder(str(tmp_path))
    assert has(folder, *objects)
    assert all(obj.id in folder for obj in objects)
    assert folder.find(Blob.from_string(b"another").id) is None
    assert Blob.from_string(b"another").id not in folder


def test_pack_that_comes_within_a_tick_of_the_clock_is_noticed(tmp_path: Path) -> None:
    folder = PackFolder(str(tmp_path))
    tick = time.time_ns() + HOUR_NS
    for obj in some(50):
        os.utime(tmp_path, ns=(tick, tick))
        assert folder.find(obj.id) is None
        write(tmp_path, obj)
        os.utime(tmp_path, ns=(tick, tick))
        assert has(folder, obj)


def test_pack_that_was_united_while_the_names_were_read_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, new = some(2)
    write(tmp_path, known)
    os.utime(tmp_path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    folder = open_pack_folder(str(tmp_path))
    names = os.listdir(tmp_path)
    write(tmp_path, new)
    # As after an hour: what the listing saw of the folder is no fresh change.
    os.utime(tmp_path, ns=(HOUR_NS, HOUR_NS))

    def read_too_early(path: str) -> list[str]:
        """Miss the old name, which has gone, and the new one, which came behind the cursor."""
        monkeypatch.undo()
        os.utime(path)
        return names

    monkeypatch.setattr(os, "listdir", read_too_early)
    assert has(folder, new)


NEEDS_FEW_FILES = """
import resource, sys
from uwf_git.store.gc.tidy import unite_packs
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.incoming_pack import find_size
resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
objects = DurableObjects(sys.argv[1])
oids = [oid.encode() for oid in sys.stdin.read().split()]
missing = b"1" * 40
assert missing not in objects
assert find_size(objects, missing) is None
for oid in oids:
    assert find_size(objects, oid).size_bytes == len(objects.get_raw(oid)[1])
assert list(objects.by_dulwich.iter_unpacked_subset(oids)) == []
assert len(oids) == 50
"""


@pytest.mark.parametrize("is_alternate", [False, True])
def test_many_packs_need_few_open_files(
    tmp_path: Path, store: Store, *, is_alternate: bool
) -> None:
    """The limit is 256 on some systems; packs are many while git's gc runs for long."""
    objects = some(50)
    for obj in objects:
        write(Path(store.path, "objects", "pack"), obj)
    path = f"{store.path}/objects"
    if is_alternate:
        other = f"{create_store(str(tmp_path / 'other.git')).path}/objects"
        Path(other, "info", "alternates").write_text(f"{path}\n")
        path = other
    subprocess.run(
        [sys.executable, "-c", NEEDS_FEW_FILES, path],
        input=" ".join(obj.id.decode() for obj in objects),
        text=True,
        check=True,
    )


def test_store_that_is_its_own_alternate_has_no_object_twice(store: Store) -> None:
    path = f"{store.path}/objects"
    Path(path, "info", "alternates").write_text(f"{path}\n")
    with pytest.raises(KeyError):
        DurableObjects(path)[ObjectID(b"1" * 40)]


def test_folder_that_stays_as_it_is_is_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *some(1))
    os.utime(tmp_path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    folder = PackFolder(str(tmp_path))
    assert folder.find(b"1" * 40) is None

    def refuse(*_args: object) -> None:
        pytest.fail("it was listed again")

    monkeypatch.setattr(os, "listdir", refuse)
    assert folder.find(b"1" * 40) is None


@pytest.mark.parametrize("opened", ["nothing", "index", "all"])
def test_object_of_a_pack_that_was_united_is_found(tmp_path: Path, opened: str) -> None:
    objects = some(6)
    packs = [write(tmp_path, *objects[:3]), write(tmp_path, *objects[3:])]
    folder = PackFolder(str(tmp_path))
    assert folder.find(b"1" * 40) is None or opened == "nothing"
    if opened == "all":
        assert has(folder, *objects)
    write(tmp_path, *objects)
    for pack in packs:
        remove(pack)
    assert has(folder, *objects)
    assert has(folder, *objects[::-1])


@pytest.mark.parametrize("which", ["index", "content", "listing"])
def test_pack_that_goes_in_the_middle_of_a_search_is_looked_for_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Another process unites packs at the worst moment, again and again."""
    objects = some(3)
    packs = [write(tmp_path, *objects)]
    folder = PackFolder(str(tmp_path))
    moves = listed = 0

    def move() -> None:
        nonlocal moves
        if moves < 5:
            moves += 1
            packs.append(write(tmp_path, *objects))
            remove(packs[-2])

    really_open, listdir = open, os.listdir

    def opening(path: str, *args: object, **more: object) -> object:
        if str(path).endswith({"index": ".idx", "content": ".pack"}.get(which, "?")):
            move()
        return really_open(path, *args, **more)  # type: ignore[call-overload]  # as it was asked

    def listing(path: str) -> list[str]:
        nonlocal listed
        listed += 1
        # What moves while the names are read may be under no name that is read.
        if which == "listing" and listed % 2:
            names = [name for name in listdir(path) if Path(packs[-1]).name not in name]
            move()
            return names
        return listdir(path)

    monkeypatch.setattr("builtins.open", opening)
    monkeypatch.setattr(os, "listdir", listing)
    assert has(folder, *objects)
    assert moves >= 1


def test_what_is_damaged_in_one_pack_is_read_from_another(tmp_path: Path) -> None:
    (obj,) = some(1)
    for _pack in range(2):
        write(tmp_path, obj)
    for path in tmp_path.glob("*.pack"):
        whole = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(whole[:14] + bytes(4) + whole[18:])
        assert has(PackFolder(str(tmp_path)), obj)
        path.write_bytes(whole)


def test_pack_without_its_index_or_without_itself_is_not_there(tmp_path: Path) -> None:
    one, other = some(2)
    Path(write(tmp_path, one) + ".idx").unlink()
    Path(write(tmp_path, other) + ".pack").unlink()
    folder = PackFolder(str(tmp_path))
    assert one.id not in folder
    assert other.id not in folder


def test_what_was_read_is_still_held_when_the_store_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = some(30)
    for obj in objects:
        write(tmp_path, obj)
    assert has(open_pack_folder(str(tmp_path)), *objects)

    def refuse(path: object, *_args: object, **_more: object) -> None:
        pytest.fail(f"{path} was opened again")

    again = open_pack_folder(str(tmp_path))
    monkeypatch.setattr("builtins.open", refuse)
    assert has(again, *objects)


def test_what_this_process_wrote_is_not_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = some(3)
    store.objects.add_objects([(obj, None) for obj in objects])

    def refuse(path: object, *_args: object, **_more: object) -> None:
        pytest.fail(f"{path} was opened")

    monkeypatch.setattr("builtins.open", refuse)
    for each in (store.objects, DurableObjects(f"{store.path}/objects")):
        assert [each[obj.id] for obj in objects] == objects


def replace_in_place(pack: str, _objects: list[ShaFile]) -> None:
    path = Path(pack + ".pack")
    path.chmod(0o644)
    path.write_bytes(bytes(len(path.read_bytes())))
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


@pytest.mark.parametrize(
    "how",
    [
        lambda pack, _objects: remove(pack),
        lambda pack, _objects: shutil.rmtree(os.path.dirname(pack)),
        replace_in_place,
    ],
    ids=["removed", "folder gone", "other content"],
)
def test_what_is_gone_from_the_disk_is_gone_when_the_store_is_opened_again(
    tmp_path: Path, how: Callable[[str, list[ShaFile]], None]
) -> None:
    objects = some(3)
    place = tmp_path / "pack"
    place.mkdir()
    pack = write(place, *objects)
    assert has(open_pack_folder(str(place)), *objects)
    how(pack, objects)
    folder = open_pack_folder(str(place))
    assert [folder.find(obj.id) for obj in objects] == [None] * 3


def test_memory_is_limited(tmp_path: Path) -> None:
    large = [Blob.from_string(os.urandom(300_000)) for _ in range(60)]
    for obj in large:
        write(tmp_path, obj)
    folder = PackFolder(str(tmp_path))
    assert has(folder, *large)
    held = folder._held  # noqa: SLF001 - what it holds is no promise, how much is
    for cache in (held.built, held.contents):
        assert cache._bytes <= 8 * 1024 * 1024  # noqa: SLF001 - as above


def test_large_pack_is_let_go_when_the_store_is_closed(store: Store, git: Git) -> None:
    blob = git("hash-object", "-w", "--stdin", cwd=Path(store.path), stdin=os.urandom(2_000_000))
    Path(store.path, "refs/heads/kept").write_text(blob)
    git("repack", "-adq", cwd=Path(store.path))
    opened = len(os.listdir("/proc/self/fd"))
    objects = DurableObjects(f"{store.path}/objects")
    assert len(objects.get_raw(ObjectID(blob.strip().encode()))[1]) == 2_000_000
    assert len(os.listdir("/proc/self/fd")) > opened
    objects.close()
    assert len(os.listdir("/proc/self/fd")) == opened


def test_packs_that_were_united_meanwhile_are_not_asked_for_ever(store: Store) -> None:
    """A program that writes on and on never asks for what is missing."""
    objects = DurableObjects(f"{store.path}/objects")
    names = objects._packs.names  # noqa: SLF001 - what it holds is no promise, how much is
    for number, obj in enumerate(some(300)):
        objects.add_objects([(obj, None)])
        if number % 20 == 0:
            unite_packs(store)
    assert len(names()) < 64
    assert all(obj.id in objects for obj in some(300))


def test_packs_that_another_thread_has_listed_meanwhile_are_asked(tmp_path: Path) -> None:
    (obj,) = some(1)
    write(tmp_path, obj)
    folder = PackFolder(str(tmp_path))
    asked: list[Pack] = []

    def question(pack: Pack, _offset: int) -> bool | None:
        asked.append(pack)
        if len(asked) > 1:
            return True if pack is not asked[0] else None
        # As if the pack were gone, and another thread had just found what it was united into.
        write(tmp_path, obj)
        os.utime(tmp_path, ns=(LONG_AGO_NS, LONG_AGO_NS))
        assert Blob.from_string(b"another").id not in folder
        return None

    assert has(folder, obj)
    assert folder.ask(obj.id, question) is True
