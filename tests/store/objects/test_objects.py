"""Objects on the disk: written so that no kill can hurt, read so that no damage goes unnoticed."""

import functools
import gc
import itertools
import os
import subprocess
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dulwich.objects import Blob, Commit, ObjectID, RawObjectID, ShaFile, Tree, sha_to_hex
from dulwich.pack import generate_unpacked_objects
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from refusing import raising, refuses
from store.conftest import Git
from store.killing import dies_at, in_child
from store.small_packs import damage, loose_file, loosen
from store.story import Story, put_raw

from uwf_git.errors import StoreDamaged
from uwf_git.model.names import Oid
from uwf_git.store.objects.commit import list_new_objects
from uwf_git.store.objects.objects import DurableObjects, ObjectStore
from uwf_git.store.objects.strict import RecentObjects
from uwf_git.store.store import Store, create_store, open_store

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


def test_pack_that_no_ref_came_to_need_is_let_go_at_the_next_write(store: Store) -> None:
    opened = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        store.objects.add_objects([(blob(b"%d" % number), None)])
    assert keeps(store) == 1
    assert len(os.listdir("/proc/self/fd")) == opened + 1


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


def test_what_cannot_be_written_leaves_no_temporary_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", raising(OSError("no space left on device")))
    with pytest.raises(OSError, match="no space left"):
        store.objects.add_objects(pair(b"content"))
    assert written(store) == []


@pytest.mark.parametrize("how", ["young", "old", "cruft", "gone", "damaged", "no index"])
def test_object_that_is_in_a_pack_already_is_written_again(
    store: Store, clock: Callable[[], int], git: Git, how: str
) -> None:
    """git may be about to drop that pack."""
    oid = ObjectID(Story(store, clock).head.commit.encode())
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    (pack,) = Path(store.path, "objects", "pack").glob("*.pack")
    again = open_store(store.path)
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


@pytest.mark.parametrize("name", [b"", b"x" * 40, b"1" * 39, b"../../config"])
def test_what_is_no_object_id_is_damage(
    store: Store, clock: Callable[[], int], git: Git, name: bytes
) -> None:
    Story(store, clock)
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    for objects in (store.objects, open_store(store.path).objects):
        with refuses("damaged-object"):
            objects[ObjectID(name)]


# Loose files are read as git wrote them, and no damage goes unnoticed.


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


def put(objects: ObjectStore, content: bytes) -> ObjectID:
    blob = Blob.from_string(content)
    objects.add_objects([(blob, None)])
    return blob.id


def test_an_object_that_was_parsed_is_not_read_again() -> None:
    below = _Counting()
    objects = RecentObjects(below)
    tree = Tree()
    below.add_objects([(tree, None)])
    parsed, raw = put(below, b"parsed"), put(below, b"raw")

    assert objects[tree.id] is objects[tree.id]
    assert objects[parsed] == objects[parsed]
    assert [objects.get_raw(raw) for _ in range(2)] == [(3, b"raw")] * 2
    assert below.reads == [tree.id, parsed, raw]


def test_large_objects_are_not_kept_and_small_ones_not_without_end() -> None:
    below = _Counting()
    objects = RecentObjects(below)
    large = put(below, b"x" * 70_000)
    many = [put(below, bytes([number]) * 60_000) for number in range(200)]

    for oid in (large, large, *many, many[0]):
        objects.get_raw(oid)

    assert below.reads == [large, large, *many, many[0]]


def test_what_is_missing_is_missing() -> None:
    objects = RecentObjects(fresh_store().objects)
    oid = ObjectID(b"1" * 40)

    assert oid not in objects
    with pytest.raises(KeyError):
        objects.get_raw(oid)


MISSING = ObjectID(b"1" * 40)


def test_dulwich_reads_what_ours_read_also_through_an_alternate(
    store: Store, tmp_path: Path
) -> None:
    first = put(store.objects, b"one")
    other = create_store(str(tmp_path / "other.git"))
    Path(other.path, "objects/info/alternates").write_text(f"{store.path}/objects\n")
    second = put(other.objects, b"two")

    assert isinstance(other.objects, DurableObjects)
    objects = other.objects.by_dulwich

    assert [objects[oid].as_raw_string() for oid in (first, second)] == [b"one", b"two"]
    assert [first in objects, second in objects, MISSING in objects] == [True, True, False]
    told = generate_unpacked_objects(objects, [(first, None), (second, None)])
    assert {sha_to_hex(RawObjectID(each.sha())) for each in told} == {first, second}


def by_git(git: Git, store: Store, *revisions: str) -> set[str]:
    told = git("rev-list", "--objects", *revisions, cwd=Path(store.path))
    return {line.split(" ")[0] for line in told.splitlines()}


def walked(store: Store, tip: Oid, had: set[Oid]) -> set[str]:
    found = [oid.decode() for oid in list_new_objects(store.objects, tip, had)]
    assert len(found) == len(set(found))
    return set(found)


def test_a_whole_thread_is_what_git_says(store: Store, story: Story, git: Git) -> None:
    story.step()
    tip = story.step("checker", "other words").commit
    assert walked(store, tip, set()) == by_git(git, store, tip)


def test_from_a_commit_that_is_had_only_what_is_new(store: Store, story: Story, git: Git) -> None:
    before = story.step().commit
    tip = story.step("checker", "other words").commit
    new = by_git(git, store, tip, f"^{before}")
    assert walked(store, tip, {before}) == new
    assert len(new) < 15
    assert walked(store, tip, {tip}) == set()


def test_every_missing_object_is_reported(store: Store, clock: Callable[[], int], git: Git) -> None:
    tip = Story(store, clock).step().commit
    loosen(store)
    for oid in sorted(by_git(git, store, tip)):
        path = loose_file(store, oid.encode())
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(StoreDamaged, match="is missing"):
            list_new_objects(create_store(store.path).objects, tip, set())
        path.write_bytes(content)
    subprocess.run(["git", "fsck", "--strict"], cwd=store.path, check=True, capture_output=True)


def test_submodules_are_not_listed(store: Store) -> None:
    tree = Tree()
    tree[b"module"] = (0o160000, ObjectID(b"1" * 40))
    store.objects.add_objects([(tree, None)])
    text = f"tree {tree.id.decode()}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n"
    commit = put_raw(store, "commit", text.encode())
    assert list_new_objects(store.objects, Oid(commit.decode()), set()) == [commit, tree.id]


def chain(store: Store, trees: list[dict[str, bytes]]) -> Oid:
    """Write a commit for each tree, one after the other; a path may have one folder."""
    tip: ObjectID | None = None
    for files in trees:
        top, folders = Tree(), dict[str, Tree]()
        for path, content in files.items():
            folder, _slash, name = path.rpartition("/")
            blob = Blob.from_string(content)
            store.objects.add_objects([(blob, None)])
            into = folders.setdefault(folder, Tree()) if folder else top
            into[name.encode()] = (0o100644, blob.id)
        for folder, tree in folders.items():
            store.objects.add_objects([(tree, None)])
            top[folder.encode()] = (0o040000, tree.id)
        store.objects.add_objects([(top, None)])
        parent = "" if tip is None else f"parent {tip.decode()}\n"
        text = f"tree {top.id.decode()}\n{parent}author a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx"
        tip = put_raw(store, "commit", f"{text}\n".encode())
    assert tip is not None
    return Oid(tip.decode())


def test_a_tree_that_comes_back_is_listed_whole(store: Store, git: Git) -> None:
    one = {"same": b"1", "other": b"2", "d/same": b"3", "d/other": b"4"}
    two = {**one, "other": b"5", "d/other": b"6"}
    moved = {"same": b"1", "d/other": b"6", "e/same": b"3", "e/other": b"4"}
    for trees in ([one, two, one], [one, two, one, two, moved, one], [one, moved, two, one]):
        tip = chain(store, trees)
        assert walked(store, tip, set()) == by_git(git, store, tip)


def test_folder_that_is_named_often_is_walked_once(store: Store) -> None:
    inner = Tree()
    blob = Blob.from_string(b"x")
    inner.add(b"x", 0o100644, blob.id)
    tree = Tree()
    for at in range(1000):
        tree.add(b"%d" % at, 0o040000, inner.id)
    store.objects.add_objects([(blob, None), (inner, None)])
    assert len(walked(store, commit_of(store, tree), set())) == 4


def commit_of(store: Store, tree: Tree) -> Oid:
    commit = Commit()
    commit.tree = tree.id
    commit.author = commit.committer = b"A <a@b>"
    commit.author_time = commit.commit_time = commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"x"
    store.objects.add_objects([(tree, None), (commit, None)])
    return Oid(commit.id.decode())
