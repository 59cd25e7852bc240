from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob
from interop.bombs import deep_chain
from refusing import refuses
from store.story import put_raw

from uwf_git.store.objects.incoming_pack import LimitedObjects
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_file import LONGEST_CHAIN
from uwf_git.store.store import Store

MIB = 1024 * 1024


def test_blob_above_the_limit_is_never_handed_out(tmp_path: Path) -> None:
    objects = LimitedObjects(DurableObjects(str(tmp_path)), most_blob_bytes=10)
    small, large = Blob.from_string(b"x" * 10), Blob.from_string(b"x" * 11)
    objects.add_objects([(small, None), (large, None)])

    assert objects[small.id] == small
    assert objects.get_raw(small.id) == (Blob.type_num, b"x" * 10)
    assert large.id in objects
    for read in (objects.__getitem__, objects.get_raw):
        with refuses("oversized-object", match="takes 11 bytes, and at most 10 bytes"):
            read(large.id)


@pytest.mark.parametrize(("kind", "most"), [("tree", 4 * MIB), ("commit", MIB)])
def test_tree_has_four_megabytes_at_most_and_a_commit_one(
    store: Store, kind: str, most: int
) -> None:
    objects = LimitedObjects(store.objects, most_blob_bytes=1)
    largest, larger = (put_raw(store, kind, bytes(size)) for size in (most, most + 1))

    assert len(objects.get_raw(largest)[1]) == most
    with refuses("oversized-object", match=f"{kind} {larger.decode()} takes"):
        objects.get_raw(larger)


def test_object_that_does_not_say_how_large_it_is_is_not_handed_out(
    tmp_path: Path, git: Callable[..., str]
) -> None:
    depth = LONGEST_CHAIN + 1
    git("init", "-q", "--bare", str(tmp_path), cwd=tmp_path)
    # git takes it, and so does dulwich, which reads what is unusual.
    git("index-pack", "--stdin", cwd=tmp_path, stdin=deep_chain(depth))
    objects, last = DurableObjects(str(tmp_path / "objects")), Blob.from_string(b"%08d" % depth)
    assert objects[last.id] == last

    with refuses("damaged-object", match="does not say how large it is"):
        LimitedObjects(objects, most_blob_bytes=10).get_raw(last.id)
