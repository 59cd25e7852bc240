"""Objects on the disk: written so that no kill can hurt, read so that no damage goes unnoticed."""

import functools
import gc
import itertools
import os
import stat
import subprocess
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.conftest import Git
from store.killing import dies_at, in_child
from store.loose import damage, loose_file, write_loose
from store.story import Story

from uwf_git.errors import StoreDamaged
from uwf_git.store.git.config import set_config
from uwf_git.store.objects.objects import (
    DurableObjects,
    ObjectStore,
    damaged_object,
    get_blob,
    get_tree,
    read_loose_file,
    refuse_garbage,
)
from uwf_git.store.objects.strict import RecentObjects
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store, open_store

LONG_AGO = (1_000_000_000, 1_000_000_000)
EMPTY_TREE = ObjectID(b"4b825dc642cb6eb9a060e54bf8d69288fbee4904")


def blob(content: bytes) -> Blob:
    return Blob.from_string(content)


def pair(content: bytes) -> list[tuple[ShaFile, str | None]]:
    """Return a blob, and a tree that holds it."""
    made = blob(content)
    tree = Tree()
    tree[b"file"] = (0o100644, made.id)
    return [(made, None), (tree, None)]


def written(store: Store) -> list[Path]:
    return [path for path in Path(store.path, "objects").rglob("*") if path.is_file()]


def endings(store: Store) -> list[str]:
    return sorted(path.suffix for path in written(store))


def test_what_was_written_is_read_by_us_and_by_git(store: Store, git: Git) -> None:
    made = blob(b"content")
    store.objects.add_objects([(made, None)])
    assert made.id in store.objects
    assert store.objects[made.id] == made
    assert open_store(store.path).objects[made.id] == made
    assert git("cat-file", "-p", made.id.decode(), cwd=Path(store.path)) == "content"


def test_one_object_is_written_as_several_are(store: Store) -> None:
    made = blob(b"content")
    assert isinstance(store.objects, DurableObjects)
    store.objects.add_object(made)
    assert open_store(store.path).objects[made.id] == made


def test_the_same_object_twice_in_a_call_is_written_once(store: Store, git: Git) -> None:
    store.objects.add_objects([(blob(b"content"), None), (blob(b"content"), "again")])
    assert endings(store) == [".idx", ".keep", ".pack"]
    listed = git("cat-file", "--batch-all-objects", "--batch-check", cwd=Path(store.path))
    assert len(listed.splitlines()) == 1


def test_all_that_one_call_writes_is_one_pack(store: Store) -> None:
    store.objects.add_objects(pair(b"content"))
    assert endings(store) == [".idx", ".keep", ".pack"]
    store.objects.add_objects([])
    assert endings(store) == [".idx", ".keep", ".pack"]


def a_commit(*parents: ObjectID) -> Commit:
    made = Commit()
    made.tree, made.parents = EMPTY_TREE, list(parents)
    made.author = made.committer = b"a <b@c>"
    made.author_time = made.commit_time = 1
    made.author_timezone = made.commit_timezone = 0
    made.message = b"message\n"
    return made


def write_commit_of(store: Store, *parents: ObjectID) -> Oid:
    commit = a_commit(*parents)
    store.objects.add_objects([(Tree(), None), (commit, None)])
    return Oid(commit.id.decode())


def keeps(store: Store) -> int:
    return endings(store).count(".keep")


def test_pack_is_kept_until_a_ref_is_at_its_commit(store: Store) -> None:
    commit = write_commit_of(store)
    assert keeps(store) == 1
    assert not store.refs.advance("refs/threads/x", seen=Oid("1" * 40), to=commit)
    # It may be preserved by another ref now.
    assert keeps(store) == 1
    assert store.refs.create("refs/threads/other", Oid("2" * 40))
    assert keeps(store) == 1
    assert store.refs.create("refs/uwf/kept/x", commit)
    assert keeps(store) == 0


def test_pack_is_kept_until_a_ref_was_moved_to_its_commit(store: Store) -> None:
    first = write_commit_of(store)
    store.refs.create("refs/threads/x", first)
    second = write_commit_of(store, ObjectID(first.encode()))
    store.refs.advance("refs/threads/x", seen=first, to=second)
    assert keeps(store) == 0
    third = write_commit_of(store, ObjectID(second.encode()))
    store.refs.move("refs/threads/x", seen=second, to_name="refs/archive/x", to=third)
    assert keeps(store) == 0


def test_pack_that_no_ref_came_to_need_is_let_go_at_the_next_write(store: Store) -> None:
    opened = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        store.objects.add_objects([(blob(b"%d" % number), None)])
    assert keeps(store) == 1
    assert len(os.listdir("/proc/self/fd")) == opened + 1


def test_pack_that_no_ref_came_to_need_is_let_go_with_the_store(store: Store) -> None:
    again = open_store(store.path)
    write_commit_of(again)
    assert keeps(store) == 1
    del again
    gc.collect()
    assert keeps(store) == 0


def test_threads_of_the_program_keep_what_each_of_them_wrote(store: Store) -> None:
    commit = write_commit_of(store)

    def write_two() -> int:
        write_commit_of(store, ObjectID(b"1" * 40))
        store.refs.create("refs/threads/y", write_commit_of(store, ObjectID(b"2" * 40)))
        write_commit_of(store, ObjectID(b"3" * 40))
        return keeps(store)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(write_two).result() == 2
    gc.collect()
    assert keeps(store) == 1
    store.refs.create("refs/threads/x", commit)
    assert keeps(store) == 0


def test_forked_child_does_not_let_go_what_its_parent_wrote(store: Store) -> None:
    commit = write_commit_of(store)
    in_child(lambda: store.refs.create("refs/threads/x", commit))
    assert keeps(store) == 1
    in_child(lambda: write_commit_of(store, ObjectID(b"1" * 40)))
    assert keeps(store) == 2


@pytest.mark.parametrize("command", ["repack -adq", "gc -q --prune=now"])
def test_pack_outlives_a_git_that_runs_before_its_ref_moves(
    store: Store, git: Git, command: str
) -> None:
    first = write_commit_of(store)
    store.refs.create("refs/threads/x", first)
    second = write_commit_of(store, ObjectID(first.encode()))
    git(*command.split(), cwd=Path(store.path))
    store.refs.advance("refs/threads/x", seen=first, to=second)
    git("fsck", "--strict", "--connectivity-only", cwd=Path(store.path))
    git(*command.split(), cwd=Path(store.path))
    assert open_store(store.path).objects[ObjectID(second.encode())]


@pytest.mark.parametrize(("mode", "is_shared"), [(0o440, "group"), (0o400, "umask")])
def test_group_reads_what_is_written_to_a_shared_store(
    store: Store, mode: int, is_shared: str
) -> None:
    set_config(f"{store.path}/config", "core.sharedRepository", is_shared)
    shared = open_store(store.path)
    before = os.umask(0o077)
    try:
        store.refs.create("refs/threads/x", write_commit_of(shared))
        del shared
    finally:
        os.umask(before)
    gc.collect()
    assert {path.stat().st_mode & 0o777 for path in written(store)} == {mode}


def test_writing_killed_anywhere_can_be_done_again(store: Store, git: Git) -> None:
    objects = DurableObjects(f"{store.path}/objects")
    for moment in itertools.count(1):
        made = pair(b"content %d" % moment)
        if not dies_at(moment, functools.partial(objects.add_objects, made)):
            break
        for obj, _path in made:
            assert obj.id not in objects or objects[obj.id] == obj
        objects.add_objects(made)
        for obj, _path in made:
            assert objects[obj.id] == obj
        if moment % 2 == 1:
            assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""
    assert moment > 7
    assert not any(path.name.endswith(".lock") for path in written(store))
    # What the killed ones left under temporary names is git's to sweep, and it does.
    assert any(path.name.startswith("tmp_pack_") for path in written(store))
    git("prune", "--expire=now", cwd=Path(store.path))
    assert not any(path.name.startswith("tmp_") for path in written(store))


def test_no_object_has_its_name_before_its_content_is_on_the_disk(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    rename, sync = os.replace, os.fsync

    def noted_rename(old: str, new: str) -> None:
        rename(old, new)
        done.append("name")

    def noted_sync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        done.append("folder" if is_folder else "content")
        sync(descriptor)

    monkeypatch.setattr(os, "replace", noted_rename)
    monkeypatch.setattr(os, "fsync", noted_sync)
    objects = DurableObjects(f"{store.path}/objects")
    objects.add_objects(pair(b"content"))
    names = [index for index, each in enumerate(done) if each == "name"]
    contents = [index for index, each in enumerate(done) if each == "content"]
    assert len(names) == len(contents) == 2
    assert max(contents) < min(names)
    assert done[-1] == "folder"


def test_what_cannot_be_written_leaves_no_temporary_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_paths: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space left"):
        store.objects.add_objects(pair(b"content"))
    assert written(store) == []


def packed_commit(store: Store, clock: Callable[[], int], git: Git) -> tuple[Store, ObjectID, Path]:
    """Return the store opened anew, a commit that is packed, and its pack."""
    head = Story(store, clock).head
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    (pack,) = Path(store.path, "objects", "pack").glob("*.pack")
    return open_store(store.path), ObjectID(head.commit.encode()), pack


@pytest.mark.parametrize("how", ["young", "old", "cruft", "gone", "damaged", "no index"])
def test_object_that_is_in_a_pack_already_is_written_again(
    store: Store, clock: Callable[[], int], git: Git, how: str
) -> None:
    """git may be about to drop that pack."""
    again, oid, pack = packed_commit(store, clock, git)
    commit = again.objects[oid]
    if how == "old":
        os.utime(pack, LONG_AGO)
    elif how == "cruft":
        pack.with_suffix(".mtimes").touch()
    elif how in {"gone", "no index"}:
        pack.with_suffix(".idx").unlink()
    elif how == "damaged":
        damage(pack.with_suffix(".idx"), b"garbage")
    again.objects.add_objects([(commit, None)])
    for path in Path(store.path, "objects", "pack").glob(pack.stem + "*"):
        if how != "damaged":
            path.unlink()
    assert again.objects[oid] == commit
    assert open_store(store.path).objects[oid] == commit


def test_objects_that_git_packs_under_an_open_store_stay_readable(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    story = Story(store, clock)
    for text in ("one", "two"):
        git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
        story.step(text=text)
    git("repack", "-adq", cwd=Path(store.path))
    assert [node.payload.get("role") for node in story.snapshot.walk_chain()] == [
        "writer",
        "writer",
        None,
    ]


def test_object_of_another_kind_is_neither_tree_nor_blob(store: Store) -> None:
    (made, _), (tree, _) = pair(b"content")
    store.objects.add_objects([(made, None), (tree, None)])

    assert get_blob(store.objects, made.id) == b"content"
    assert get_tree(store.objects, tree.id) == tree
    with refuses("damaged-object", match="is not a blob"):
        get_blob(store.objects, tree.id)
    with refuses("damaged-object", match="is not a tree"):
        get_tree(store.objects, made.id)
    for get in (get_blob, get_tree):
        with refuses("damaged-object", match="is missing"):
            get(store.objects, ObjectID(b"1" * 40))


def test_damage_of_what_is_no_name_can_be_shown() -> None:
    assert "\ufffd cannot be read" in damaged_object(ObjectID(b"\xff"), "cannot be read").message


def test_what_is_not_there_is_not_there(store: Store) -> None:
    missing = ObjectID(b"1" * 40)
    assert missing not in store.objects
    with pytest.raises(KeyError):
        store.objects[missing]


@pytest.mark.parametrize("name", [b"", b"x" * 40, b"1" * 39, b"../../config"])
def test_what_is_no_object_id_is_damage(
    store: Store, clock: Callable[[], int], git: Git, name: bytes
) -> None:
    Story(store, clock)
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    for objects in (store.objects, open_store(store.path).objects):
        with refuses("damaged-object"):
            objects[ObjectID(name)]


def test_objects_of_an_alternate_are_read(
    store: Store, clock: Callable[[], int], git: Git, tmp_path: Path
) -> None:
    head = Story(store, clock).head
    git("clone", "--quiet", "--mirror", "--shared", store.path, "copy.git", cwd=tmp_path)
    copy = open_store(str(tmp_path / "copy.git"))
    assert copy.objects[ObjectID(head.commit.encode())].id == head.commit.encode()


def test_a_pack_with_bytes_changed_is_damage(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    story = Story(store, clock)
    for number in range(5):
        story.step(text="a text that is much like the last one " * 5 + str(number))
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    names = git(
        "cat-file", "--batch-all-objects", "--batch-check=%(objectname)", cwd=Path(store.path)
    )
    found = []
    for path in Path(store.path, "objects", "pack").iterdir():
        whole = path.read_bytes()
        for position in range(0, len(whole), max(len(whole) // 8, 1)):
            spoiled = bytearray(whole)
            spoiled[position] ^= 0xFF
            damage(path, bytes(spoiled))
            found += [kind_of_damage(store.path, name) for name in names.split()[::4]]
        damage(path, whole)
    assert (
        {StoreDamaged.__name__, "none"} <= set(found) <= {StoreDamaged.__name__, "none", "KeyError"}
    )


def kind_of_damage(path: str, name: str) -> str:
    try:
        DurableObjects(f"{path}/objects")[ObjectID(name.encode())]
    except (StoreDamaged, KeyError) as error:
        return type(error).__name__
    return "none"


def test_an_unreferenced_store_has_closed_its_packs(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    head = Story(store, clock).head
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    again = open_store(store.path)
    assert ObjectID(head.commit.encode()) in again.objects
    del again
    held = subprocess.run(
        ["ls", "-l", f"/proc/{os.getpid()}/fd"], capture_output=True, text=True, check=False
    ).stdout
    assert ".pack" not in held


# Loose files are read as git wrote them, and no damage goes unnoticed.


def test_only_the_object_of_that_name_and_of_that_length_is_read(store: Store) -> None:
    made = blob(b"content")
    write_loose(store, [made])
    path = str(loose_file(store, made.id))
    assert read_loose_file(path, made.id, most_bytes=7) == (3, b"content")
    assert read_loose_file(path, b"1" * 40, most_bytes=7) is None
    # The header counts with the content, so a few bytes more may pass.
    assert read_loose_file(path, made.id, most_bytes=-20) is None
    assert read_loose_file(path + "0", made.id, most_bytes=7) is None


def test_garbage_behind_an_object_is_refused(store: Store) -> None:
    made = blob(os.urandom(3_000_000))
    write_loose(store, [made])
    path = loose_file(store, made.id)
    refuse_garbage(str(path))
    refuse_garbage(str(path) + "0")
    damage(path, path.read_bytes() + b"0")
    assert read_loose_file(str(path), made.id, most_bytes=3_000_000) is None
    with pytest.raises(ValueError, match="garbage"):
        refuse_garbage(str(path))


def test_a_loose_object_with_any_byte_changed_is_damaged_or_the_same(store: Store) -> None:
    """Some bytes of the zlib stream say nothing; every other change is noticed."""
    made = blob(b"the content of a node, the content of a node")
    write_loose(store, [made])
    path = loose_file(store, made.id)
    whole = path.read_bytes()
    noticed = 0
    for position, change in itertools.product(range(len(whole)), (1, 0x80, 0xFF)):
        spoiled = bytearray(whole)
        spoiled[position] ^= change
        damage(path, bytes(spoiled))
        told = what_reading_tells(store, made.id)
        assert told == made or made.id.decode() in str(told)
        noticed += told != made
    assert noticed > len(whole) * 2


def what_reading_tells(store: Store, oid: ObjectID) -> ShaFile | str:
    try:
        return store.objects[oid]
    except StoreDamaged as error:
        return error.message


def test_a_loose_object_cut_short_is_damaged(store: Store) -> None:
    made = blob(os.urandom(100))
    write_loose(store, [made])
    whole = loose_file(store, made.id).read_bytes()
    for length in range(len(whole)):
        damage(loose_file(store, made.id), whole[:length])
        # The last four bytes are a sum that zlib does not insist on having.
        if length < len(whole) - 4:
            with pytest.raises(StoreDamaged, match=f"{made.id.decode()} cannot be read: .") as told:
                store.objects[made.id]
            assert told.value.__cause__ is not None
            why = str(told.value.__cause__) or type(told.value.__cause__).__name__
            assert " ".join(why.split())[:100] in told.value.message


@given(content=st.binary(max_size=60), compressed=st.booleans())
def test_whatever_is_in_a_loose_file_is_the_object_or_damage(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, *, compressed: bool
) -> None:
    directory = tmp_path_factory.mktemp("objects")
    path = directory / "ab" / ("c" * 38)
    path.parent.mkdir()
    path.write_bytes(zlib.compress(content) if compressed else content)
    with refuses("damaged-object"):
        DurableObjects(str(directory))[ObjectID(b"ab" + b"c" * 38)]


def test_object_whose_loose_file_is_empty_is_there_and_damaged(store: Store) -> None:
    made = blob(b"content")
    write_loose(store, [made])
    damage(loose_file(store, made.id), b"")
    assert made.id in store.objects
    with refuses("damaged-object"):
        store.objects[made.id]


# What was read lately is not read again; everything else is as in the store.


class _Counting:
    """An object store that counts what is read."""

    def __init__(self) -> None:
        self.objects: ObjectStore = fresh_store().objects
        self.reads: list[ObjectID] = []

    def __contains__(self, sha1: ObjectID) -> bool:
        return sha1 in self.objects

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        self.reads.append(sha1)
        return self.objects[sha1]

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        self.reads.append(name)
        return self.objects.get_raw(name)

    def add_objects(self, objects: Iterable[tuple[ShaFile, str | None]]) -> object:
        return self.objects.add_objects(objects)


def put(objects: RecentObjects, content: bytes) -> ObjectID:
    blob = Blob.from_string(content)
    objects.add_objects([(blob, None)])
    return blob.id


def test_a_small_object_is_read_once() -> None:
    below = _Counting()
    objects = RecentObjects(below)
    oid = put(objects, b"words")

    assert oid in objects
    assert [objects.get_raw(oid) for _ in range(3)] == [(3, b"words")] * 3
    assert objects[oid] == Blob.from_string(b"words")
    assert below.reads == [oid]


def test_an_object_that_was_parsed_is_not_read_again() -> None:
    below = _Counting()
    objects = RecentObjects(below)
    oid = put(objects, b"words")

    assert objects[oid] == objects[oid]
    assert objects.get_raw(oid) == (3, b"words")
    assert below.reads == [oid]


def test_large_objects_are_not_kept_and_small_ones_not_without_end() -> None:
    below = _Counting()
    objects = RecentObjects(below)
    large = put(objects, b"x" * 70_000)
    many = [put(objects, bytes([number]) * 60_000) for number in range(200)]

    for oid in (large, large, *many, many[0]):
        objects.get_raw(oid)

    assert below.reads == [large, large, *many, many[0]]


def test_what_is_missing_is_missing() -> None:
    objects = RecentObjects(fresh_store().objects)
    oid = ObjectID(b"1" * 40)

    assert oid not in objects
    with pytest.raises(KeyError):
        objects.get_raw(oid)


def test_a_tree_is_parsed_once() -> None:
    objects = RecentObjects(_Counting())
    tree = Tree()
    tree[b"name"] = 0o100644, put(objects, b"words")
    objects.add_objects([(tree, None)])
    raw = objects.get_raw(tree.id)

    assert objects[tree.id] is objects[tree.id]
    assert objects[tree.id] == tree
    assert objects.get_raw(tree.id) == raw
