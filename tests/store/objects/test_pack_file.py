"""Objects of a pack are read as git reads them; dulwich reads the forms that we do not."""

import gc
import random
import shutil
import sys
from pathlib import Path

import pytest
from dulwich.objects import Blob, ShaFile, Tree
from store.conftest import Git
from store.loose import write_loose

from uwf_git.errors import StoreDamaged
from uwf_git.store.objects import objects as objects_module
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_file import PackFolder, find_pack_problem
from uwf_git.store.objects.pack_writer import PackRights, build_entry, write_pack
from uwf_git.store.store import Store

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
