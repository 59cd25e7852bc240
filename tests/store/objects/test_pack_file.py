"""Objects of a pack are read as git reads them; dulwich reads the forms that we do not."""

import gc
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from hypothesis import given
from hypothesis import strategies as st
from store.conftest import Git
from store.loose import write_loose

from uwf_git.errors import StoreDamaged
from uwf_git.store.gc.tidy import unite_packs
from uwf_git.store.objects import objects as objects_module
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_file import (
    ByteCache,
    Pack,
    PackFolder,
    find_pack_problem,
    open_pack_folder,
)
from uwf_git.store.objects.pack_writer import PackRights, build_entry, write_pack
from uwf_git.store.store import Store, create_store

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
    chance = random.Random(5)
    chance.shuffle(made)
    assert all(read_all(PackFolder(str(folder_of(store))), made))


def test_packs_that_come_and_go_are_noticed(store: Store, made: list[ShaFile], git: Git) -> None:
    folder = PackFolder(str(folder_of(store)))
    assert not any(read_all(folder, made))
    git("repack", "-adq", cwd=Path(store.path))
    assert all(read_all(folder, made))
    later = Blob.from_string(b"a later one")
    write_loose(store, [later])
    Path(store.path, "refs", "heads", "later").write_bytes(later.id + b"\n")
    git("repack", "-dq", cwd=Path(store.path))
    assert all(read_all(folder, [*made, later]))
    git("repack", "-adfq", cwd=Path(store.path))
    assert all(read_all(folder, [later, *made]))
    shutil.rmtree(folder_of(store))
    # What is open stays readable, as git has its objects elsewhere before it removes a pack.
    assert all(read_all(folder, made))
    assert not any(read_all(PackFolder(str(folder_of(store))), made))


def keep_blobs(store: Store, git: Git, contents: list[bytes]) -> list[ShaFile]:
    """Pack a blob of each content, without deltas."""
    found: list[ShaFile] = [Blob.from_string(content) for content in contents]
    tree = Tree()
    for number, each in enumerate(found):
        tree[b"%03d.txt" % number] = (0o100644, each.id)
    write_loose(store, [*found, tree])
    Path(store.path, "refs", "heads", "kept").write_bytes(tree.id + b"\n")
    git("-c", "pack.window=0", "repack", "-adfq", cwd=Path(store.path))
    return found


def content_of(folder: PackFolder, each: ShaFile) -> bytes:
    found = folder.find(each.id)
    assert found is not None
    return found[1]


def test_what_was_read_is_held_as_long_as_eight_megabytes_have_room(store: Store, git: Git) -> None:
    megabyte = 1024 * 1024
    small, *large = keep_blobs(
        store, git, [b"small", *(b"%d" % n * (megabyte - n) for n in range(1, 9))]
    )
    folder = PackFolder(str(folder_of(store)))
    first = content_of(folder, small)
    held = [content_of(folder, each) for each in large]

    # Read again, they take no more room.
    assert [content_of(folder, each) for each in large] == held
    for each, content in zip(large, held, strict=True):
        assert content_of(folder, each) is content
    assert content_of(folder, small) is first


def test_what_was_made_of_deltas_is_held_too(store: Store, made: list[ShaFile], git: Git) -> None:
    git("repack", "-adfq", cwd=Path(store.path))
    folder = PackFolder(str(folder_of(store)))
    alike = made[:40]
    held = [content_of(folder, each) for each in alike]

    for each, content in zip(alike, held, strict=True):
        assert content_of(folder, each) is content


def test_what_has_no_more_room_replaces_what_was_held(store: Store, git: Git) -> None:
    megabyte = 1024 * 1024
    small, *large = keep_blobs(store, git, [b"small", *(b"%d" % n * megabyte for n in range(1, 9))])
    folder = PackFolder(str(folder_of(store)))
    first = content_of(folder, small)
    held = [content_of(folder, each) for each in large]

    assert content_of(folder, large[-1]) is held[-1]
    assert content_of(folder, small) is not first
    assert content_of(folder, large[0]) is not held[0]


def test_what_is_larger_than_a_megabyte_is_not_held(store: Store, git: Git) -> None:
    (huge,) = keep_blobs(store, git, [b"x" * (1024 * 1024 + 1)])
    folder = PackFolder(str(folder_of(store)))

    assert content_of(folder, huge) is not content_of(folder, huge)


def test_what_is_not_in_a_pack_is_not_found(store: Store, made: list[ShaFile], git: Git) -> None:
    git("repack", "-adq", cwd=Path(store.path))
    folder = PackFolder(str(folder_of(store)))
    for each in made:
        name = bytearray(each.id)
        name[-1] = ord("0") if name[-1] != ord("0") else ord("1")
        assert folder.find(bytes(name)) is None
    for first in range(256):
        assert folder.find(b"%02x" % first + b"0" * 38) is None


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


def test_index_of_an_unknown_version_is_not_read(
    store: Store, made: list[ShaFile], git: Git
) -> None:
    git("repack", "-adq", cwd=Path(store.path))
    (index,) = folder_of(store).glob("*.idx")
    index.chmod(0o644)
    index.write_bytes(b"\xfftOc\0\0\0\3" + index.read_bytes()[8:])
    assert not any(read_all(PackFolder(str(folder_of(store))), made))


def test_a_damaged_pack_does_not_hide_an_object_that_is_whole_elsewhere(
    store: Store, made: list[ShaFile], git: Git
) -> None:
    git("repack", "-aq", cwd=Path(store.path))
    (path,) = folder_of(store).glob("*.pack")
    objects = DurableObjects(f"{store.path}/objects")
    for each in made:
        loose = Path(store.path, "objects", each.id.decode()[:2], each.id.decode()[2:])
        hidden = loose.rename(f"{loose}.hidden")
        assert objects[each.id] == each
        hidden.rename(loose)
    whole = path.read_bytes()
    path.chmod(0o644)
    # In place, as a failing disk would; the length stays, for it is mapped.
    path.write_bytes(whole[:12] + bytes(len(whole) - 12))
    assert [objects.get_raw(each.id)[1] for each in made] == [each.as_raw_string() for each in made]


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

    def interrupt(_path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(objects_module, "open_pack_folder", interrupt)
    with pytest.raises(KeyboardInterrupt):
        DurableObjects(f"{store.path}/objects")
    gc.collect()

    assert said == []


def test_oldest_goes_first() -> None:
    cache: ByteCache[str, str] = ByteCache(10)
    for key in "abc":
        cache.put(key, key.upper(), 4)
    assert [cache.get(key) for key in "abc"] == [None, "B", "C"]


def test_what_is_too_large_is_not_held_and_takes_no_room() -> None:
    cache: ByteCache[str, str] = ByteCache(10, largest=5)
    cache.put("a", "A", 5)
    cache.put("b", "B", 6)
    assert (cache.get("a"), cache.get("b")) == ("A", None)


def test_what_is_held_already_takes_no_more_room() -> None:
    cache: ByteCache[str, str] = ByteCache(10)
    cache.put("a", "A", 5)
    for _time in range(5):
        cache.put("b", "B", 5)
    assert (cache.get("a"), cache.get("b")) == ("A", "B")


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
