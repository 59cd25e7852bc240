from pathlib import Path

import pytest
from dulwich.objects import Blob, Commit, Tree
from refusing import refuses
from store.story import put_raw

from uwf_git.store.objects.incoming_pack import LimitedObjects, render_size
from uwf_git.store.objects.objects import DurableObjects
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


def test_trees_and_commits_have_limits_of_their_own(tmp_path: Path) -> None:
    objects = LimitedObjects(DurableObjects(str(tmp_path)), most_blob_bytes=1)
    tree, commit = Tree(), Commit()
    for number in range(1000):
        tree[b"%06d" % number] = (0o100644, Blob.from_string(b"").id)
    commit.tree, commit.author, commit.committer = tree.id, b"a <a>", b"a <a>"
    commit.author_time = commit.commit_time = commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"x" * MIB
    objects.add_objects([(tree, None), (commit, None)])

    assert len(tree.as_raw_string()) > 1
    assert objects[tree.id] == tree
    with refuses("oversized-object", match=f"commit {commit.id.decode()} takes 2m"):
        objects.get_raw(commit.id)


@pytest.mark.parametrize(("kind", "most"), [("tree", 4 * MIB), ("commit", MIB)])
def test_tree_has_four_megabytes_at_most_and_a_commit_one(
    store: Store, kind: str, most: int
) -> None:
    objects = LimitedObjects(store.objects, most_blob_bytes=1)
    largest, larger = (put_raw(store, kind, bytes(size)) for size in (most, most + 1))

    assert len(objects.get_raw(largest)[1]) == most
    with refuses("oversized-object", match=f"{kind} {larger.decode()} takes"):
        objects.get_raw(larger)


def test_what_is_not_there_is_not_there(tmp_path: Path) -> None:
    objects = LimitedObjects(DurableObjects(str(tmp_path)), most_blob_bytes=1)

    assert Tree().id not in objects
    with pytest.raises(KeyError):
        objects[Tree().id]


@pytest.mark.parametrize(
    ("size", "told"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1k"), (1025, "2k"), (32 * MIB, "32m")],
)
def test_size_is_written_as_git_config_takes_it(size: int, told: str) -> None:
    assert render_size(size) == told
