"""Refs to blobs: their ids are git's, and a parcel holds what its refs need."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

import pytest
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob, ObjectID
from dulwich.pack import write_pack_objects
from refusing import refuses
from store.story import Story

from uwf_git.store.git.config import GitConfig
from uwf_git.store.objects.commit import list_new_objects
from uwf_git.store.objects.incoming_pack import PackLimits
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.remotes.incoming import (
    ReceiveLimits,
    build_parcel,
    copy_objects,
    hold_blobs,
    mapped_bytes,
    name_blob,
    open_received,
    read_fetch_limits,
    read_receive_limits,
    receive_objects,
    split_alternates,
)
from uwf_git.store.store import Store, create_store

Git = Callable[..., str]
BLOBS = [Blob.from_string(b"one"), Blob.from_string(b"two" * 1000)]


def pack() -> bytes:
    file = BytesIO()
    write_pack_objects(file, [(blob, None) for blob in BLOBS], object_format=DEFAULT_OBJECT_FORMAT)
    return file.getvalue()


def left(store: Store) -> list[str]:
    return os.listdir(store.local_path("incoming"))


def packs(store: Store, ending: str) -> list[Path]:
    return list(Path(store.path, "objects", "pack").glob(f"*.{ending}"))


def test_objects_are_in_the_store_when_they_are_taken_in_and_not_before(
    store: Store, git: Git
) -> None:
    with receive_objects(store) as incoming:
        incoming.write(pack())
        incoming.unpack()
        assert all(blob.id in incoming.objects for blob in BLOBS)
        assert not any(blob.id in store.objects for blob in BLOBS)
        with ExitStack() as until_needed:
            incoming.move_into_store(until_needed)
            # Until a ref needs it, git leaves the pack alone.
            git("repack", "-adq", cwd=Path(store.path))
            assert len(packs(store, "keep")) == 1
    assert packs(store, "keep") == []
    assert [store.objects[blob.id] for blob in BLOBS] == BLOBS
    assert left(store) == []
    assert "bad" not in git("fsck", "--full", "--no-dangling", cwd=Path(store.path))


KILLED = """
import os, signal, sys
from uwf_git.store.remotes.incoming import receive_objects
from uwf_git.store.store import open_store
with receive_objects(open_store(sys.argv[1])) as incoming:
    incoming.write(b"half a pack")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_transfer_left_is_swept_by_the_next(store: Store) -> None:
    subprocess.run([sys.executable, "-c", KILLED, store.path], check=False)
    assert len(left(store)) == 2
    with receive_objects(store) as one:
        one.write(b"x")
        # Living transfers are left alone.
        with receive_objects(store):
            assert len(left(store)) == 4
        assert len(left(store)) == 2
    assert left(store) == []


def test_only_our_own_is_swept_and_never_behind_a_link(store: Store, tmp_path: Path) -> None:
    place = Path(store.local_path("incoming"))
    (place / "poetry").mkdir(parents=True)
    (place / "poetry.lock").write_text("precious")
    with receive_objects(store):
        pass
    assert sorted(os.listdir(place)) == ["poetry", "poetry.lock"]
    place.rename(tmp_path / "mine")
    place.symlink_to(tmp_path / "mine")
    with refuses("linked-folder"), receive_objects(store):
        pass


def test_the_parcel_of_a_blob_has_gits_name_for_it() -> None:
    content = b'{"host": "a"}'
    argv = ["git", "hash-object", "--stdin"]
    ran = subprocess.run(argv, input=content, check=True, capture_output=True)
    parcel = build_parcel({"refs/claims/A": content, "refs/claims/B": None})
    assert parcel.changes == {"refs/claims/A": ran.stdout.decode().strip(), "refs/claims/B": None}
    assert name_blob(content) == parcel.changes["refs/claims/A"]
    (needed,) = parcel.objects
    assert hold_blobs([content])[needed].as_raw_string() == content


def test_a_pack_that_goes_while_the_others_are_measured_does_not_count(store: Store) -> None:
    folder = Path(store.path, "objects", "pack")
    (folder / "a.pack").write_bytes(bytes(100))
    (folder / "b.pack").symlink_to("gone")
    assert mapped_bytes(store.objects) == 100


def limits(**values: str) -> ReceiveLimits:
    return read_receive_limits(
        GitConfig({f"uwf.{name.lower()}": [text] for name, text in values.items()})
    )


def test_without_settings_there_are_limits() -> None:
    assert limits() == (32 * 1024 * 1024, 600)


def test_zero_is_no_limit() -> None:
    assert limits(maxBlobSize="0").most_blob_bytes == sys.maxsize
    assert limits(receiveTimeout="0").timeout_s == 24 * 3600


def test_no_push_takes_longer_than_a_day() -> None:
    assert limits(receiveTimeout="9" * 15).timeout_s == 24 * 3600


BAD = ["", "lots", "-1", "1.5m", "5 k", "5kb", "9" * 16, "\u0665"]


@pytest.mark.parametrize(
    ("name", "text"),
    [(name, text) for name in ("maxBlobSize", "receiveTimeout") for text in BAD]
    + [("receiveTimeout", "10m")],
)
def test_value_that_is_not_a_number_is_an_error(name: str, text: str) -> None:
    with refuses("bad-receive-limit", match=rf"uwf\.{name} is .*, not a number"):
        limits(**{name: text})


def fetched(**values: str) -> PackLimits:
    return read_fetch_limits(
        GitConfig({f"uwf.{name.lower()}": [text] for name, text in values.items()})
    )


def test_fetch_has_limits_of_its_own() -> None:
    assert fetched() == PackLimits(32 * 1024 * 1024, 1_000_000, None, 100_000)
    assert fetched(maxBlobSize="1k", maxFetchSize="2g", maxFetchObjects="3") == PackLimits(
        1024, 3, 2 * 1024**3
    )
    names = ("maxBlobSize", "maxFetchSize", "maxFetchObjects", "maxFetchRefs")
    assert fetched(**dict.fromkeys(names, "0")) == PackLimits(*[sys.maxsize] * 4)
    # Whoever accepts more refs accepts a longer list of them.
    assert fetched(maxFetchRefs="5").most_talk_bytes == fetched().most_talk_bytes
    assert fetched(maxFetchRefs="1m").most_talk_bytes > 2 * fetched().most_talk_bytes


@pytest.mark.parametrize("name", ["maxFetchSize", "maxFetchObjects", "maxFetchRefs"])
def test_limit_of_a_fetch_that_is_not_a_number_is_an_error(name: str) -> None:
    with refuses("bad-receive-limit", match=rf"uwf\.{name} is 'lots'"):
        fetched(**{name: "lots"})


def test_a_thread_is_whole_where_it_was_copied_to(tmp_path: Path, clock: Callable[[], int]) -> None:
    source, target = (create_store(str(tmp_path / f"{name}.git")) for name in "ab")
    tip = Story(source, clock).step().commit
    needed = list_new_objects(source.objects, tip, set())
    for some in (needed[:5], [], needed):
        with receive_objects(target) as incoming:
            copy_objects(source.objects, some, incoming)
            with ExitStack() as until_needed:
                incoming.move_into_store(until_needed)
    assert list_new_objects(target.objects, tip, set()) == needed


OLD, NEW, OTHER = (Blob.from_string(content) for content in (b"old", b"new", b"other"))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a hook: objects in the store, in quarantine and elsewhere."""
    create_store(str(tmp_path / "store.git")).objects.add_objects([(OLD, None)])
    DurableObjects(str(tmp_path / "incoming")).add_objects([(NEW, None)])
    DurableObjects(str(tmp_path / "else:where")).add_objects([(OTHER, None)])
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
