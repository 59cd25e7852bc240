"""Objects of a pack are read as git reads them; dulwich reads the forms that we do not."""

import gc
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from hypothesis import given
from hypothesis import strategies as st
from refusing import raising
from store.conftest import Git
from store.small_packs import write_loose

from uwf_git.errors import StoreDamaged
from uwf_git.store.durable import Stamp, stamp_of
from uwf_git.store.objects import objects as objects_module
from uwf_git.store.objects import pack_file
from uwf_git.store.objects.incoming_pack import find_size
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_file import (
    ByteCache,
    Pack,
    PackFolder,
    find_pack_problem,
    open_pack_folder,
)
from uwf_git.store.objects.pack_writer import PackRights, build_entry, write_pack
from uwf_git.store.store import Store
from uwf_git.store.tidy import unite_packs

BIG = bytes(random.Random(3).choices(b"abcdefgh \n", k=300_000))
"""More than is read of an entry at once, and does not compress away."""


def blobs() -> list[ShaFile]:
    """Return similar texts, which git packs as deltas, and texts of other sizes."""
    text = [f"line {number}, of a text that hardly changes\n" for number in range(60)]
    alike = []
    for number in range(40):
        text[number] = f"changed in version {number}\n"
        alike.append("".join(text).encode())
    others = [b"", b"x", BIG, BIG + b"a little more\n", b"\0" * 2_000_000]
    return [Blob.from_string(content) for content in alike + others]


@pytest.fixture
def made(store: Store) -> list[ShaFile]:
    """Write the blobs, and a tree of them all that a ref keeps."""
    found = blobs()
    tree = Tree()
    for number, each in enumerate(found):
        tree[b"%03d.txt" % number] = (0o100644, each.id)
    write_loose(store, [*found, tree])
    Path(store.path, "refs", "heads", "kept").write_bytes(tree.id + b"\n")
    return [*found, tree]


def folder_of(store: Store) -> Path:
    return Path(store.path, "objects", "pack")


def read_all(folder: PackFolder, made: list[ShaFile]) -> list[bool]:
    return [folder.find(each.id) == (each.type_num, each.as_raw_string()) for each in made]


@pytest.mark.parametrize(
    "how",
    [
        ("gc", "--quiet", "--prune=now"),
        ("-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"),
        ("-c", "pack.depth=200", "-c", "pack.window=50", "repack", "-adfq"),
        ("-c", "pack.packSizeLimit=1m", "-c", "pack.window=0", "repack", "-adfq"),
        ("-c", "core.compression=0", "repack", "-adFq"),
    ],
)
def test_every_object_that_git_packs_is_read(
    store: Store, made: list[ShaFile], git: Git, how: tuple[str, ...]
) -> None:
    git(*how, cwd=Path(store.path))
    assert all(read_all(PackFolder(str(folder_of(store))), made))
    random.Random(5).shuffle(made)
    assert all(read_all(PackFolder(str(folder_of(store))), made))


@pytest.mark.parametrize("suffix", ["idx", "pack"])
def test_a_damaged_pack_never_gives_another_object(
    store: Store, made: list[ShaFile], git: Git, suffix: str
) -> None:
    git("repack", "-adq", cwd=Path(store.path))
    (path,) = folder_of(store).glob(f"*.{suffix}")
    whole = path.read_bytes()
    path.chmod(0o644)
    chance = random.Random(11)
    read = 0
    for _ in range(60):
        spoiled = bytearray(whole)
        for _change in range(chance.randint(1, 30)):
            spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
        if chance.random() < 0.3:
            del spoiled[chance.randrange(len(spoiled)) :]
        path.write_bytes(spoiled)
        objects = DurableObjects(f"{store.path}/objects")
        for each in chance.sample(made, 8):
            try:
                found = objects[each.id]
            except (StoreDamaged, KeyError):
                continue
            assert found == each
            read += 1
    assert read > 60


def test_what_git_no_longer_writes_is_left_to_dulwich(
    store: Store, made: list[ShaFile], git: Git
) -> None:
    git("-c", "pack.indexVersion=1", "repack", "-adq", cwd=Path(store.path))
    git("prune-packed", cwd=Path(store.path))
    assert not any(read_all(PackFolder(str(folder_of(store))), made))
    objects = DurableObjects(f"{store.path}/objects")
    assert [objects[each.id] for each in made] == made


@pytest.mark.parametrize(("far", "is_sound"), [(0, True), (16, True), (17, False), (24, False)])
def test_index_has_a_far_offset_for_each_object_but_the_first_at_most(
    tmp_path: Path, far: int, *, is_sound: bool
) -> None:
    entries = [build_entry(Blob.from_string(b"%d" % number)) for number in range(3)]
    pack = write_pack(str(tmp_path), entries, PackRights(durable=False), keep=False).path
    index = Path(pack + ".idx")
    whole = index.read_bytes()
    index.unlink()
    index.write_bytes(whole[:-40] + bytes(far) + whole[-40:])
    assert (find_pack_problem(pack + ".pack") is None) == is_sound


def test_what_was_interrupted_while_it_opened_ends_silently(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)

    monkeypatch.setattr(objects_module, "open_pack_folder", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        DurableObjects(f"{store.path}/objects")
    gc.collect()

    assert said == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30))))
def test_it_holds_the_newest_that_have_room(puts: list[tuple[int, int]]) -> None:
    cache: ByteCache[int, int] = ByteCache(50, largest=20)
    held: dict[int, int] = {}
    for key, size in puts:
        cache.put(key, -key, size)
        if size <= 20 and key not in held:
            held[key] = size
            while sum(held.values()) > 50:
                del held[next(iter(held))]
    assert {key for key in range(10) if cache.get(key) is not None} == held.keys()


# Packs come and go under a reader: it never misses an object that one of them has.


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


@pytest.fixture
def set_by_utime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder be told by what a test sets: the kernel sets a ctime, and some a size."""

    def stamp_by_mtime(found: os.stat_result) -> Stamp:
        return stamp_of(found)._replace(ctime_ns=0, size=0)

    monkeypatch.setattr(pack_file, "stamp_of", stamp_by_mtime)


@pytest.mark.usefixtures("set_by_utime")
@pytest.mark.parametrize(("tick", "age_ns"), [(HOUR_NS + 1, 90_000_000), (HOUR_NS, 900_000_000)])
def test_pack_that_comes_within_a_tick_of_the_clock_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tick: int, age_ns: int
) -> None:
    """Times without a fraction are those of a file system that counts in seconds."""
    folder = PackFolder(str(tmp_path))
    monkeypatch.setattr(time, "time_ns", lambda: tick + age_ns)
    for obj in some(50):
        os.utime(tmp_path, ns=(tick, tick))
        assert folder.find(obj.id) is None
        write(tmp_path, obj)
        os.utime(tmp_path, ns=(tick, tick))
        assert has(folder, obj)


@pytest.mark.usefixtures("set_by_utime")
def test_pack_that_was_united_while_the_names_were_read_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, new = some(2)
    write(tmp_path, known)
    os.utime(tmp_path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    folder = open_pack_folder(str(tmp_path))
    listdir = os.listdir
    names = listdir(tmp_path)
    write(tmp_path, new)
    # As after an hour: what the listing saw of the folder is no fresh change.
    os.utime(tmp_path, ns=(HOUR_NS, HOUR_NS))

    def read_too_early(path: str) -> list[str]:
        """Miss the old name, which has gone, and the new one, which came behind the cursor."""
        monkeypatch.setattr(os, "listdir", listdir)
        os.utime(path)
        return names

    monkeypatch.setattr(os, "listdir", read_too_early)
    assert has(folder, new)


def test_many_packs_need_few_open_files(store: Store) -> None:
    """The limit is 256 on some systems; packs are many while git's gc runs for long."""
    made = some(50)
    for obj in made:
        write(Path(store.path, "objects", "pack"), obj)
    objects = DurableObjects(f"{store.path}/objects")

    assert [objects.get_raw(obj.id)[1] for obj in made] == [obj.as_raw_string() for obj in made]
    assert all(find_size(objects, obj.id) for obj in made)
    assert list(objects.by_dulwich.iter_unpacked_subset([obj.id for obj in made])) == []
    opened = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    assert len([path for path in opened if path.startswith(store.path)]) < 20


def test_store_that_is_its_own_alternate_has_no_object_twice(store: Store) -> None:
    path = f"{store.path}/objects"
    Path(path, "info", "alternates").write_text(f"{path}\n")
    with pytest.raises(KeyError):
        DurableObjects(path)[ObjectID(b"1" * 40)]


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


def replace_in_place(pack: str) -> None:
    path = Path(pack + ".pack")
    path.chmod(0o644)
    path.write_bytes(bytes(len(path.read_bytes())))
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


@pytest.mark.parametrize(
    "how",
    [remove, lambda pack: shutil.rmtree(os.path.dirname(pack)), replace_in_place],
    ids=["removed", "folder gone", "other content"],
)
def test_what_is_gone_from_the_disk_is_gone_when_the_store_is_opened_again(
    tmp_path: Path, how: Callable[[str], None]
) -> None:
    objects = some(3)
    place = tmp_path / "pack"
    place.mkdir()
    pack = write(place, *objects)
    assert has(open_pack_folder(str(place)), *objects)
    how(pack)
    folder = open_pack_folder(str(place))
    assert [folder.find(obj.id) for obj in objects] == [None] * 3


def test_memory_is_limited(tmp_path: Path) -> None:
    large = [Blob.from_string(os.urandom(299_800)) for _ in range(60)]
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


@pytest.mark.usefixtures("set_by_utime")
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
