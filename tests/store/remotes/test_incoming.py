import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

import pytest
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob
from dulwich.pack import write_pack_objects
from store.loose import write_loose

from uwf_git.store.remotes.incoming import receive_objects
from uwf_git.store.store import Store, create_store

Git = Callable[..., str]
BLOBS = [Blob.from_string(b"one"), Blob.from_string(b"two" * 1000)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


def pack() -> bytes:
    file = BytesIO()
    objects = [(blob, None) for blob in BLOBS]
    write_pack_objects(file, objects, object_format=DEFAULT_OBJECT_FORMAT)
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


def test_what_is_not_taken_in_leaves_nothing(store: Store) -> None:
    with receive_objects(store) as incoming:
        incoming.write(pack())
        incoming.unpack()
    assert not any(blob.id in store.objects for blob in BLOBS)
    assert left(store) == []


def test_the_same_pack_may_come_twice(store: Store) -> None:
    for _time in range(2):
        with receive_objects(store) as incoming:
            incoming.write(pack())
            incoming.unpack()
            with ExitStack() as until_needed:
                incoming.move_into_store(until_needed)
    # Each has a name of its own: git may be about to remove the older one.
    assert len(packs(store, "pack")) == 2
    assert [store.objects[blob.id] for blob in BLOBS] == BLOBS


def test_what_is_incoming_stands_on_what_is_there(store: Store) -> None:
    write_loose(store, [BLOBS[0]])
    with receive_objects(store) as incoming:
        assert BLOBS[0].id in incoming.objects
        incoming.unpack()
        with ExitStack() as until_needed:
            incoming.move_into_store(until_needed)
    assert os.listdir(os.path.join(store.path, "objects", "pack")) == []


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


def test_only_our_own_is_swept_wherever_the_folder_leads(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "poetry").mkdir(parents=True)
    (mine / "poetry.lock").write_text("precious")
    Path(store.local_path("incoming")).parent.mkdir(exist_ok=True)
    os.symlink(mine, store.local_path("incoming"))
    with receive_objects(store):
        pass
    assert sorted(os.listdir(mine)) == ["poetry", "poetry.lock"]
