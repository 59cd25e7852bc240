"""Objects on the disk: written so that no kill can hurt, read so that no damage goes unnoticed."""

import functools
import itertools
import os
import stat
import subprocess
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from hypothesis import given
from hypothesis import strategies as st
from store.conftest import Git
from store.killing import dies_at
from store.story import Story

from uwf_git.store.objects.objects import DamagedObject, DurableObjects, get_blob, get_tree
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


def file_of(store: Store, oid: bytes) -> Path:
    name = oid.decode()
    return Path(store.path, "objects", name[:2], name[2:])


def written(store: Store) -> list[Path]:
    return [path for path in Path(store.path, "objects").rglob("*") if path.is_file()]


def test_what_was_written_is_read_by_us_and_by_git(store: Store, git: Git) -> None:
    made = blob(b"content")
    store.objects.add_objects([(made, None)])
    assert made.id in store.objects
    assert store.objects[made.id] == made
    assert git("cat-file", "-p", made.id.decode(), cwd=Path(store.path)) == "content"
    assert file_of(store, made.id).stat().st_mode & 0o777 == 0o444


def test_one_object_is_written_as_several_are(store: Store) -> None:
    made = blob(b"content")
    assert isinstance(store.objects, DurableObjects)
    store.objects.add_object(made)
    assert [path.name for path in written(store)] == [made.id.decode()[2:]]


def test_the_same_object_twice_is_written_once(store: Store) -> None:
    store.objects.add_objects([(blob(b"content"), None), (blob(b"content"), "again")])
    assert len(written(store)) == 1


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
    # What the killed ones left is git's to sweep, and it does.
    assert any(path.name.startswith("tmp_obj_") for path in written(store))
    git("prune", "--expire=now", cwd=Path(store.path))
    assert written(store) == []


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


def test_an_object_that_is_there_is_made_young_again(store: Store) -> None:
    made = blob(b"content")
    store.objects.add_objects([(made, None)])
    path = file_of(store, made.id)
    os.utime(path, LONG_AGO)
    store.objects.add_objects([(made, None)])
    assert path.stat().st_mtime > LONG_AGO[1]


def packed_commit(store: Store, clock: Callable[[], int], git: Git) -> tuple[Store, ObjectID, Path]:
    """Return the store opened anew, a commit that is packed, and its pack."""
    head = Story(store, clock).head
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    (pack,) = Path(store.path, "objects", "pack").glob("*.pack")
    return open_store(store.path), ObjectID(head.commit.encode()), pack


def test_a_packed_object_is_not_written_again_and_its_pack_is_young(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    again, oid, pack = packed_commit(store, clock, git)
    an_hour_ago = time.time() - 3600
    os.utime(pack, (an_hour_ago, an_hour_ago))
    again.objects.add_objects([(again.objects[oid], None)])
    assert not file_of(store, oid).exists()
    assert pack.stat().st_mtime > an_hour_ago + 1000


def test_an_object_of_an_old_pack_is_written_for_git_may_be_dropping_that(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    again, oid, pack = packed_commit(store, clock, git)
    os.utime(pack, LONG_AGO)
    again.objects.add_objects([(again.objects[oid], None)])
    assert file_of(store, oid).exists()


def test_an_object_of_a_cruft_pack_is_written_for_its_age_is_in_a_list(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    again, oid, pack = packed_commit(store, clock, git)
    pack.with_suffix(".mtimes").touch()
    again.objects.add_objects([(again.objects[oid], None)])
    assert file_of(store, oid).exists()


def test_an_object_whose_pack_went_away_is_written_loose(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    """The pack is known from before, but git has removed it since."""
    head = Story(store, clock).head
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    again = open_store(store.path)
    commit = again.objects[ObjectID(head.commit.encode())]
    for path in Path(store.path, "objects", "pack").iterdir():
        path.unlink()
    again.objects.add_objects([(commit, None)])
    assert file_of(store, commit.id).exists()


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


def test_the_file_of_another_user_is_replaced_by_our_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = blob(b"content")
    store.objects.add_objects([(made, None)])
    path = file_of(store, made.id)
    before = path.stat().st_ino

    def refuse(_path: str) -> None:
        raise PermissionError(13, "permission denied")

    monkeypatch.setattr(os, "utime", refuse)
    store.objects.add_objects([(made, None)])
    assert path.stat().st_ino != before
    assert store.objects[made.id] == made


def test_object_in_the_pack_of_another_user_is_written_loose(
    store: Store, clock: Callable[[], int], git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, oid, pack = packed_commit(store, clock, git)
    change = os.utime

    def refuse(path: str) -> None:
        if os.fspath(path) == str(pack):
            raise PermissionError(13, "permission denied")
        change(path)

    monkeypatch.setattr(os, "utime", refuse)
    again.objects.add_objects([(again.objects[oid], None)])

    assert file_of(store, oid).exists()


@pytest.mark.parametrize("index", [b"", b"garbage", b"\377tOc\0\0\0\2" + b"\xff" * 1100])
def test_object_in_a_pack_with_a_damaged_index_is_written_loose(
    store: Store, clock: Callable[[], int], git: Git, index: bytes
) -> None:
    before, oid, pack = packed_commit(store, clock, git)
    commit = before.objects[oid]
    damage(pack.with_suffix(".idx"), index)
    again = open_store(store.path)

    again.objects.add_objects([(commit, None)])

    assert again.objects[oid] == commit
    assert file_of(store, oid).exists()


def test_object_of_another_kind_is_neither_tree_nor_blob(store: Store) -> None:
    (made, _), (tree, _) = pair(b"content")
    store.objects.add_objects([(made, None), (tree, None)])

    assert get_blob(store.objects, made.id) == b"content"
    assert get_tree(store.objects, tree.id) == tree
    with pytest.raises(DamagedObject, match="is not a blob"):
        get_blob(store.objects, tree.id)
    with pytest.raises(DamagedObject, match="is not a tree"):
        get_tree(store.objects, made.id)
    for get in (get_blob, get_tree):
        with pytest.raises(DamagedObject, match="is missing"):
            get(store.objects, ObjectID(b"1" * 40))


def test_damage_of_what_is_no_name_can_be_shown() -> None:
    assert "\ufffd cannot be read" in DamagedObject(ObjectID(b"\xff"), "cannot be read").message


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
        with pytest.raises(DamagedObject):
            objects[ObjectID(name)]


def test_objects_of_an_alternate_are_read(
    store: Store, clock: Callable[[], int], git: Git, tmp_path: Path
) -> None:
    head = Story(store, clock).head
    git("clone", "--quiet", "--mirror", "--shared", store.path, "copy.git", cwd=tmp_path)
    copy = open_store(str(tmp_path / "copy.git"))
    assert copy.objects[ObjectID(head.commit.encode())].id == head.commit.encode()


def damage(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def test_a_loose_object_with_any_byte_changed_is_damaged_or_the_same(store: Store) -> None:
    """Some bytes of the zlib stream say nothing; every other change is noticed."""
    made = blob(b"the content of a node, the content of a node")
    store.objects.add_objects([(made, None)])
    path = file_of(store, made.id)
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
    except DamagedObject as error:
        return error.message


def test_a_loose_object_cut_short_is_damaged(store: Store) -> None:
    made = blob(os.urandom(100))
    store.objects.add_objects([(made, None)])
    whole = file_of(store, made.id).read_bytes()
    for length in range(len(whole)):
        damage(file_of(store, made.id), whole[:length])
        # The last four bytes are a sum that zlib does not insist on having.
        if length < len(whole) - 4:
            with pytest.raises(
                DamagedObject, match=f"{made.id.decode()} cannot be read: ."
            ) as told:
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
    with pytest.raises(DamagedObject):
        DurableObjects(str(directory))[ObjectID(b"ab" + b"c" * 38)]


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
        {DamagedObject.__name__, "none"}
        <= set(found)
        <= {DamagedObject.__name__, "none", "KeyError"}
    )


def kind_of_damage(path: str, name: str) -> str:
    try:
        DurableObjects(f"{path}/objects")[ObjectID(name.encode())]
    except (DamagedObject, KeyError) as error:
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
