"""Folders of nodes united: every node is there, whoever unites them gets the same folder."""

import itertools
from typing import Any

from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.model.builtin import TEXT
from uwf_git.model.node import Node, build_node
from uwf_git.store.nodes.tree import add_nodes, find_node, unite_nodes
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.store import Store


def text(words: str, timestamp: int = 1) -> Node:
    return build_node(TEXT, words, timestamp=timestamp)


def folder(objects: ObjectStore, *nodes: Node) -> ObjectID:
    grown = add_nodes(objects, None, nodes)
    objects.add_objects([(each, None) for each in grown.objects])
    return grown.nodes


def written(store: Store, folders: list[ObjectID]) -> ObjectID | None:
    united = unite_nodes(store.objects, folders)
    store.objects.add_objects([(each, None) for each in united.new])
    return united.nodes


def test_every_node_of_each_folder_is_there(store: Store) -> None:
    nodes = [text(str(number)) for number in range(40)]
    parts = [nodes[:25], nodes[10:30], nodes[30:]]

    united = written(store, [folder(store.objects, *part) for part in parts])

    assert all(find_node(store.objects, united, node.hash) == node for node in nodes)
    assert united == folder(store.objects, *nodes)


@given(parts=st.lists(st.lists(st.integers(0, 30), max_size=8), min_size=1, max_size=4))
def test_the_order_of_folders_does_not_matter(parts: list[list[int]]) -> None:
    objects: Any = MemoryObjectStore()
    folders = [
        folder(objects, *(text(str(n), timestamp=n + place) for n in part))
        for place, part in enumerate(parts)
    ]
    assert unite_nodes(objects, folders).nodes == unite_nodes(objects, folders[::-1]).nodes


@given(
    base=st.lists(st.integers(0, 60), max_size=30),
    parts=st.lists(st.lists(st.integers(0, 60), max_size=8), min_size=1, max_size=4),
)
def test_a_base_saves_work_and_changes_nothing(base: list[int], parts: list[list[int]]) -> None:
    objects: Any = MemoryObjectStore()
    before = [text(str(n)) for n in base]
    folders = [
        folder(objects, *before, *(text(str(n), timestamp=n + place) for n in part))
        for place, part in enumerate(parts)
    ]
    common = folder(objects, *before)

    with_base = unite_nodes(objects, folders, common)

    assert with_base.nodes == unite_nodes(objects, folders).nodes


def test_what_one_folder_alone_changed_is_not_read() -> None:
    objects: Any = MemoryObjectStore()
    nodes = [text(str(number)) for number in range(40)]
    base = folder(objects, *nodes)
    # Two that lie in different inner folders.
    one, other = find_apart()
    sides = [folder(objects, *nodes, one), folder(objects, *nodes, other)]
    both = folder(objects, *nodes, one, other)
    roots = {base, *sides}

    class RootsOnly:
        def __getitem__(self, oid: ObjectID) -> ShaFile:
            assert oid in roots
            found: ShaFile = objects[oid]
            return found

    only: Any = RootsOnly()
    assert unite_nodes(only, [base, *sides], base).nodes == both


def find_apart() -> list[Node]:
    """Return two more nodes, each in an inner folder of its own."""
    first = text("more")
    others = (text(f"more {number}") for number in itertools.count())
    return [first, next(each for each in others if each.hash[0] != first.hash[0])]


def test_of_two_files_of_a_node_the_earlier_one_stays(store: Store) -> None:
    early, late = text("same", timestamp=5), text("same", timestamp=9)
    united = written(store, [folder(store.objects, late), folder(store.objects, early)])

    found = find_node(store.objects, united, early.hash)
    assert found is not None
    assert found.timestamp == 5


def test_one_folder_and_equal_ones_are_not_read() -> None:
    same = ObjectID(b"1" * 40)
    untouched: Any = None
    assert unite_nodes(untouched, [same, same]).nodes == same
    assert unite_nodes(untouched, []).nodes is None


def test_two_payloads_under_one_name_are_an_error(store: Store) -> None:
    node = text("right")
    forged = Blob.from_string(b"---\ntype: %s\ntimestamp: 1\n---\nwrong" % TEXT.encode())
    leaf = Tree()
    leaf[f"{node.hash[2:]}.md".encode()] = (0o100644, forged.id)
    inner, outer = Tree(), Tree()
    inner[node.hash[1].encode()] = (0o40000, leaf.id)
    outer[node.hash[0].encode()] = (0o40000, inner.id)
    store.objects.add_objects([(each, None) for each in (forged, leaf, inner, outer)])

    with refuses("node-collision"):
        unite_nodes(store.objects, [folder(store.objects, node), outer.id])


def test_only_new_folders_are_to_be_written(store: Store) -> None:
    nodes = [text(str(number)) for number in range(40)]
    first = folder(store.objects, *nodes[:30])

    united = unite_nodes(store.objects, [first, folder(store.objects, nodes[30])])
    again = add_nodes(store.objects, first, nodes[:30])
    grown = add_nodes(united.objects, united.nodes, [nodes[31]])

    # The root, and a folder in it: the one in that is the second folder's.
    assert len(united.new) == 2
    assert (again.objects, again.nodes) == ([], first)
    assert len(united.without(grown.outgrown)) == 1
    assert grown.nodes == folder(store.objects, *nodes[:32])
