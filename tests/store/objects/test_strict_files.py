"""What git says of the files of objects, an object that nothing needs included."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob
from fresh_store import fresh_store
from refusing import refuses
from store.small_packs import write_loose
from store.story import tell_small_story

from uwf_git.store.objects.strict import check_object_files
from uwf_git.store.store import Store, open_store

Git = Callable[..., str]


@pytest.fixture
def store(clock: Callable[[], int]) -> Store:
    store = fresh_store()
    tell_small_story(store, clock)
    return store


@pytest.fixture
def packed(store: Store, git: Git) -> Store:
    git("gc", "--quiet", "--prune=now", cwd=Path(store.path))
    return open_store(store.path)


def objects_of(store: Store) -> Path:
    return Path(store.path, "objects")


def spoil(path: Path, change: Callable[[bytes], bytes]) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(change(content))


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "garbage": lambda content: content + b"garbage",
    "zeros": lambda content: content + bytes(4096),
    "cut": lambda content: content[:-1],
    "empty": lambda _content: b"",
    "flipped": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_loose_object_is_the_whole_of_its_file(store: Store, how: str) -> None:
    blob = Blob.from_string(b"nothing needs it")
    write_loose(store, [blob])
    assert list(check_object_files(str(objects_of(store)))) == []
    name = f"{blob.id[:2].decode()}/{blob.id[2:].decode()}"

    spoil(objects_of(store) / name, CHANGES[how])

    (bad,) = check_object_files(str(objects_of(store)))
    assert bad.name == name
    assert "git fetch --refetch" in bad.hint
    with refuses("damaged-object", match=r"cannot be read"):
        open_store(store.path).objects.get_raw(blob.id)


def test_what_cannot_be_read_is_told_as_any_damage(store: Store) -> None:
    names = [f"ab/{'c' * 38}", "pack/x.idx", "pack/x.pack"]
    for name in names:
        (objects_of(store) / name).mkdir(parents=True)

    found = list(check_object_files(str(objects_of(store))))

    assert [bad.name for bad in found] == names
    assert {bad.problem for bad in found} == {"cannot be read: Is a directory"}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("file", ["pack/*.pack", "pack/*.idx", "info/commit-graph"])
def test_a_file_with_a_checksum_ends_with_it(packed: Store, file: str, how: str) -> None:
    assert list(check_object_files(str(objects_of(packed)))) == []
    (path,) = objects_of(packed).glob(file)

    spoil(path, CHANGES[how])

    names = [bad.name for bad in check_object_files(str(objects_of(packed)))]
    assert path.relative_to(objects_of(packed)).as_posix() in names
