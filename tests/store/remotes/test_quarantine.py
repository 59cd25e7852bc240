import os
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, ObjectID
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.remotes.incoming import mapped_bytes, open_received, split_alternates
from uwf_git.store.store import create_store

Git = Callable[..., str]

OLD, NEW, OTHER = (Blob.from_string(content) for content in (b"old", b"new", b"other"))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a hook: objects in the store, in quarantine and elsewhere."""
    store = create_store(str(tmp_path / "store.git"))
    store.objects.add_objects([(OLD, None)])
    DurableObjects(str(tmp_path / "incoming")).add_object(NEW)
    DurableObjects(str(tmp_path / "else:where")).add_object(OTHER)
    quoted = '"' + str(tmp_path / "else:where") + '"'
    return os.environ | {
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "incoming"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{tmp_path}/store.git/objects:{quoted}",
    }


def test_what_is_pushed_is_seen_with_what_was_there(
    environ: dict[str, str], tmp_path: Path
) -> None:
    objects = open_received(str(tmp_path / "store.git"), environ).objects

    for blob in (OLD, NEW, OTHER):
        assert blob.id in objects
        assert objects[blob.id] == blob
        assert objects.get_raw(blob.id) == (Blob.type_num, blob.data)


def test_what_is_nowhere_is_not_there(environ: dict[str, str], tmp_path: Path) -> None:
    objects = open_received(str(tmp_path / "store.git"), environ).objects
    nowhere = ObjectID(b"1" * 40)

    assert nowhere not in objects
    with pytest.raises(KeyError):
        objects[nowhere]
    with pytest.raises(KeyError):
        objects.get_raw(nowhere)


def test_nothing_is_written_into_the_quarantine(environ: dict[str, str], tmp_path: Path) -> None:
    objects = open_received(str(tmp_path / "store.git"), environ).objects
    before = list((tmp_path / "incoming").rglob("*"))

    with refuses("not-writable"):
        objects.add_objects([(Blob.from_string(b"mine"), None)])

    assert list((tmp_path / "incoming").rglob("*")) == before


def test_without_a_quarantine_it_is_the_store(tmp_path: Path) -> None:
    create_store(str(tmp_path / "store.git"))

    store = open_received(str(tmp_path / "store.git"), os.environ)

    store.objects.add_objects([(OLD, None)])
    assert OLD.id in store.objects


def test_packs_of_every_place_are_counted(
    environ: dict[str, str], tmp_path: Path, git: Git
) -> None:
    store = open_received(str(tmp_path / "store.git"), environ)
    before = mapped_bytes(store.objects)
    assert 0 < before < 5000
    oid = git("hash-object", "-w", "--stdin", cwd=tmp_path / "store.git", stdin=os.urandom(5000))
    git("pack-objects", "-q", "objects/pack/pack", cwd=tmp_path / "store.git", stdin=oid)

    assert mapped_bytes(store.objects) > before + 5000


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("", []),
        ("/a", ["/a"]),
        ("/a:/b c", ["/a", "/b c"]),
        (":/a::", ["/a"]),
        (r'"/a:b":/c', ["/a:b", "/c"]),
        (r'/c:"/a\"b\\c\n\303\274"', ["/c", '/a"b\\c\nü']),
        ('"/never ended', ["/never ended"]),
        ('"\\', []),
    ],
)
def test_alternates_are_split_as_git_splits_them(text: str, paths: list[str]) -> None:
    assert split_alternates(text) == paths


@given(text=st.text(alphabet='/ab:"\\07n', max_size=30))
def test_any_text_is_split_into_paths_that_are_not_empty(text: str) -> None:
    assert all(split_alternates(text))
