"""What keeps nodes, and finding one there."""

from collections.abc import Callable
from pathlib import Path

import pytest
from store.story import AGENT, CLOSURE, THREAD, WORKFLOW, Story, signed

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import TEXT
from uwf_git.model.node import build_node
from uwf_git.store.keeper import keeps_versions, open_keeper, open_keepers
from uwf_git.store.node_tree import get_tree
from uwf_git.store.registry import add_version
from uwf_git.store.store import Store, open_store
from uwf_git.store.workflow_tree import Source

REF = f"refs/threads/{THREAD}"
OTHER = build_node(TEXT, "other", timestamp=0)


def test_a_thread_is_asked_at_its_tip(memory: Store, clock: Callable[[], int]) -> None:
    story = Story(memory, clock)
    first = story.snapshot.get_head_node()
    story.step()
    (keeper,) = open_keepers(memory, REF)
    assert keeper.commit.oid == story.head.commit
    assert keeper.find(first.hash) == first
    assert keeper.find(OTHER.hash) is None
    assert first.hash in keeper.names(first.hash[:3])
    assert keeper.lists(first.hash)
    assert not keeper.lists(OTHER.hash)
    assert not keeps_versions(REF)


def test_each_version_of_a_workflow_keeps_its_own(memory: Store) -> None:
    first = add_version(
        memory, None, added=("demo", WORKFLOW, [AGENT]), source=Source(b"1"), signing=signed(0)
    )
    add_version(memory, first, added=("demo", OTHER, []), source=Source(b"2"), signing=signed(1))
    newest, oldest = open_keepers(memory, "refs/workflows/demo")
    assert [each.find(AGENT.hash) for each in (newest, oldest)] == [None, AGENT]
    assert [each.find(OTHER.hash) for each in (newest, oldest)] == [OTHER, None]
    assert open_keeper(memory, "refs/workflows/demo") == newest


def test_where_there_is_nothing_there_is_no_keeper(memory: Store) -> None:
    assert open_keeper(memory, REF) is None
    assert list(open_keepers(memory, REF)) == []


def spoil(store: Store, oid: bytes) -> None:
    path = Path(store.path, "objects", oid[:2].decode(), oid[2:].decode())
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
    keepers = list(open_keepers(open_store(store.path), REF))
    assert len(keepers) == (0 if part == "commit" else 1)
    for keeper in keepers:
        assert list(keeper.list_readable(node.hash)) == []
        assert not keeper.lists(node.hash)
        if is_told:
            with pytest.raises(StoreDamaged):
                keeper.find(node.hash)
        else:
            assert keeper.find(node.hash) is None


def test_a_damaged_folder_hides_only_what_might_be_in_it(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    node = story.snapshot.get_head_node()
    other = next(each for each in (WORKFLOW, AGENT, *CLOSURE) if each.hash[0] != node.hash[0])
    spoil(store, get_tree(store.objects, story.snapshot.nodes)[node.hash[0].encode()][1])
    keeper = open_keeper(open_store(store.path), REF)
    assert keeper is not None
    assert keeper.find(other.hash) == other
    with pytest.raises(StoreDamaged):
        keeper.find(node.hash)


def test_a_version_behind_a_damaged_one_cannot_be_asked(store: Store) -> None:
    versions = [
        add_version(
            store, None, added=("demo", WORKFLOW, []), source=Source(b"1"), signing=signed(0)
        )
    ]
    for number in (1, 2):
        node = build_node(TEXT, str(number), timestamp=0)
        added = ("demo", node, ())
        signing = signed(number)
        versions.append(
            add_version(store, versions[-1], added=added, source=Source(b"2"), signing=signing)
        )
    spoil(store, versions[1].commit.oid.encode())
    keepers = open_keepers(open_store(store.path), "refs/workflows/demo")
    assert [keeper.commit.oid for keeper in keepers] == [versions[2].commit.oid]
