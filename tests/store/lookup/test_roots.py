"""Roots, the commits that keep nodes, and finding a node in one."""

from collections.abc import Callable

import pytest
from store.loose import loose_file, loosen
from store.story import AGENT, CLOSURE, THREAD, WORKFLOW, Story, signed

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import TEXT
from uwf_git.model.node import build_node
from uwf_git.store.lookup.lookup import keeps_versions, open_root, open_roots
from uwf_git.store.objects.objects import get_tree
from uwf_git.store.store import Store, open_store
from uwf_git.store.workflows import SourceFiles, add_version

REF = f"refs/threads/{THREAD}"
OTHER = build_node(TEXT, "other", timestamp=0)


def test_a_thread_is_asked_at_its_tip(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    first = story.snapshot.get_head_node()
    story.step()
    (root,) = open_roots(store, REF)
    assert root.commit.oid == story.head.commit
    assert root.find(first.hash) == first
    assert root.find(OTHER.hash) is None
    assert first.hash in root.names(first.hash[:3])
    assert root.lists(first.hash)
    assert not root.lists(OTHER.hash)
    assert not keeps_versions(REF)


def test_each_version_of_a_workflow_keeps_its_own(store: Store) -> None:
    first = add_version(
        store, None, added=("demo", WORKFLOW, [AGENT]), source=SourceFiles(b"1"), signing=signed(0)
    )
    add_version(
        store, first, added=("demo", OTHER, []), source=SourceFiles(b"2"), signing=signed(1)
    )
    newest, oldest = open_roots(store, "refs/workflows/demo")
    assert [each.find(AGENT.hash) for each in (newest, oldest)] == [None, AGENT]
    assert [each.find(OTHER.hash) for each in (newest, oldest)] == [OTHER, None]
    assert open_root(store, "refs/workflows/demo") == newest


def test_a_missing_ref_has_no_root(store: Store) -> None:
    assert open_root(store, REF) is None
    assert list(open_roots(store, REF)) == []


def spoil(store: Store, oid: bytes) -> None:
    loosen(store)
    path = loose_file(store, oid)
    path.chmod(0o644)
    path.write_bytes(b"")


@pytest.mark.parametrize(("part", "is_told"), [("commit", False), ("tree", False), ("nodes", True)])
def test_what_is_damaged_keeps_nothing(
    store: Store, clock: Callable[[], int], part: str, *, is_told: bool
) -> None:
    story = Story(store, clock)
    node = story.snapshot.get_head_node()
    commit = story.snapshot.commit
    oids = {"commit": commit.oid.encode(), "tree": commit.tree, "nodes": story.snapshot.nodes}
    spoil(store, oids[part])
    roots = list(open_roots(open_store(store.path), REF))
    assert len(roots) == (0 if part == "commit" else 1)
    for root in roots:
        assert list(root.list_readable(node.hash)) == []
        assert not root.lists(node.hash)
        if is_told:
            with pytest.raises(StoreDamaged):
                root.find(node.hash)
        else:
            assert root.find(node.hash) is None


def test_a_damaged_folder_hides_only_what_might_be_in_it(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    node = story.snapshot.get_head_node()
    other = next(each for each in (WORKFLOW, AGENT, *CLOSURE) if each.hash[0] != node.hash[0])
    spoil(store, get_tree(store.objects, story.snapshot.nodes)[node.hash[0].encode()][1])
    root = open_root(open_store(store.path), REF)
    assert root is not None
    assert root.find(other.hash) == other
    with pytest.raises(StoreDamaged):
        root.find(node.hash)


def test_a_version_behind_a_damaged_one_cannot_be_asked(store: Store) -> None:
    versions = [
        add_version(
            store, None, added=("demo", WORKFLOW, []), source=SourceFiles(b"1"), signing=signed(0)
        )
    ]
    for number in (1, 2):
        node = build_node(TEXT, str(number), timestamp=0)
        added = ("demo", node, ())
        signing = signed(number)
        versions.append(
            add_version(store, versions[-1], added=added, source=SourceFiles(b"2"), signing=signing)
        )
    spoil(store, versions[1].commit.oid.encode())
    roots = open_roots(open_store(store.path), "refs/workflows/demo")
    assert [root.commit.oid for root in roots] == [versions[2].commit.oid]
