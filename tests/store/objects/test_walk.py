import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Blob, Commit, ObjectID, Tree
from store.loose import loose_file, loosen
from store.story import Story, put_raw

from uwf_git.errors import StoreDamaged
from uwf_git.model.names import Oid
from uwf_git.store.objects.commit import list_new_objects
from uwf_git.store.store import Store, create_store

Git = Callable[..., str]


def by_git(git: Git, store: Store, *revisions: str) -> set[str]:
    told = git("rev-list", "--objects", *revisions, cwd=Path(store.path))
    return {line.split(" ")[0] for line in told.splitlines()}


def walked(store: Store, tip: Oid, had: set[Oid]) -> set[str]:
    found = [oid.decode() for oid in list_new_objects(store.objects, tip, had)]
    assert len(found) == len(set(found))
    return set(found)


def test_a_whole_thread_is_what_git_says(store: Store, clock: Callable[[], int], git: Git) -> None:
    story = Story(store, clock)
    story.step()
    tip = story.step("checker", "other words").commit
    assert walked(store, tip, set()) == by_git(git, store, tip)


def test_from_a_commit_that_is_had_only_what_is_new(
    store: Store, clock: Callable[[], int], git: Git
) -> None:
    story = Story(store, clock)
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
    tip = commit_of(store, tree)
    assert len(walked(store, tip, set())) == 4


def commit_of(store: Store, tree: Tree) -> Oid:
    commit = Commit()
    commit.tree = tree.id
    commit.author = commit.committer = b"A <a@b>"
    commit.author_time = commit.commit_time = commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"x"
    store.objects.add_objects([(tree, None), (commit, None)])
    return Oid(commit.id.decode())
