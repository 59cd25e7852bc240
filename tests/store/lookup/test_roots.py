"""Roots, the commits that keep nodes, and finding a node in one."""

import pytest
from store.small_packs import damage, loose_file, loosen
from store.story import AGENT, THREAD, WORKFLOW, Story, signed

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import TEXT
from uwf_git.model.node import build_node
from uwf_git.store.lookup import open_root, open_roots
from uwf_git.store.store import Store, open_store
from uwf_git.store.workflows import SourceFiles, add_version

REF = f"refs/threads/{THREAD}"
OTHER = build_node(TEXT, "other", timestamp=0)


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
    assert [each.lists(AGENT.hash) for each in (newest, oldest)] == [False, True]
    assert open_root(store, "refs/workflows/demo") == newest


def spoil(store: Store, oid: bytes) -> None:
    loosen(store)
    damage(loose_file(store, oid), b"")


@pytest.mark.parametrize(("part", "is_told"), [("commit", False), ("tree", False), ("nodes", True)])
def test_what_is_damaged_keeps_nothing(
    store: Store, story: Story, part: str, *, is_told: bool
) -> None:
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


def test_a_version_behind_a_damaged_one_cannot_be_asked(store: Store) -> None:
    versions = [
        add_version(
            store, None, added=("demo", WORKFLOW, []), source=SourceFiles(b"1"), signing=signed(0)
        )
    ]
    for number in (1, 2):
        added = ("demo", build_node(TEXT, str(number), timestamp=0), ())
        signing = signed(number)
        versions.append(
            add_version(store, versions[-1], added=added, source=SourceFiles(b"2"), signing=signing)
        )
    spoil(store, versions[1].commit.oid.encode())
    roots = open_roots(open_store(store.path), "refs/workflows/demo")
    assert [root.commit.oid for root in roots] == [versions[2].commit.oid]
