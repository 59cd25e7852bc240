"""Folders of nodes, side by side; the rules of what may lie in them."""

from typing import Any

import pytest
from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, Tree
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.story import put_raw

from uwf_git.model.builtin import TEXT
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node
from uwf_git.store.node_folders import NodeFolders, object_id
from uwf_git.store.nodes import add_nodes
from uwf_git.store.store import Store

NODES = [build_node(TEXT, f"note {number}", timestamp=0) for number in range(60)]
BLOB = Blob.from_string(b"x")


def raw(oid: ObjectID) -> bytes:
    return bytes.fromhex(oid.decode())


def folder(objects: MemoryObjectStore, *nodes: Node) -> bytes:
    growth = add_nodes(objects, None, nodes)
    objects.add_objects([(obj, None) for obj in growth.objects])
    return raw(growth.nodes)


def tree(objects: MemoryObjectStore, entries: dict[str, tuple[int, Any]]) -> ObjectID:
    """Write a tree of entries: a mode and an id, or the entries of a folder."""
    made = Tree()
    for name, (mode, inner) in entries.items():
        made[name.encode()] = (mode, tree(objects, inner) if isinstance(inner, dict) else inner)
    objects.add_objects([(made, None), (BLOB, None)])
    return made.id


def told(objects: MemoryObjectStore, old: bytes | None, new: bytes) -> list[tuple[str, str]]:
    changes = NodeFolders(objects).compare(old, new, keep_old=True)
    return [(change.kind, change.path) for change in changes]


@given(before=st.sets(st.sampled_from(NODES)), after=st.sets(st.sampled_from(NODES)))
def test_added_and_removed_nodes_are_reported_by_name(before: set[Node], after: set[Node]) -> None:
    objects = MemoryObjectStore()
    old, new = folder(objects, *before), folder(objects, *after)

    for keep_old in (True, False):
        changes = list(NodeFolders(objects).compare(old, new, keep_old=keep_old))
        assert {each.name for each in changes if each.kind == "added"} == {
            node.hash for node in after - before
        }
        assert {each.name for each in changes if each.kind == "lost"} == {
            node.hash for node in before - after
        }
        assert [each.path for each in changes] == sorted(each.path for each in changes)


@given(nodes=st.sets(st.sampled_from(NODES)))
def test_node_is_found_where_it_lies(nodes: set[Node]) -> None:
    objects = MemoryObjectStore()
    folders, place = NodeFolders(objects), folder(objects, *nodes)

    for node in NODES:
        blob = folders.find(place, node.hash)
        assert (blob is not None) == (node in nodes)
        if blob is not None:
            assert object_id(blob) in objects


def test_only_folders_that_differ_are_read() -> None:
    objects = MemoryObjectStore()
    old, new = folder(objects, *NODES[:-1]), folder(objects, *NODES)
    read: list[ObjectID] = []

    class Counting(MemoryObjectStore):
        def get_raw(self, name: Any) -> tuple[int, bytes]:
            read.append(name)
            return objects.get_raw(name)

    assert len(list(NodeFolders(Counting()).compare(old, new, keep_old=True))) == 1
    assert len(read) <= 6


FILE, FOLDER = 0o100644, 0o040000
STEM = "0123456789A"

ODD = [
    ({"README": (FILE, BLOB.id)}, "nodes/README", "does not belong there"),
    ({"88": (FOLDER, {})}, "nodes/88", "does not belong there"),
    ({"Z": (FOLDER, {})}, "nodes/Z", "does not belong there"),
    ({"8": (FILE, BLOB.id)}, "nodes/8", "is not a folder: its mode is 100644"),
    ({"8": (FOLDER, {"U": (FOLDER, {})})}, "nodes/8/U", "does not belong there"),
    ({"8": (FOLDER, {"F": (0o160000, b"1" * 40)})}, "nodes/8/F", "its mode is 160000"),
    ({"8": (FOLDER, {"F": (FOLDER, {"x.txt": (FILE, BLOB.id)})})}, "nodes/8/F/x.txt", "belong"),
    ({"8": (FOLDER, {"F": (FOLDER, {STEM: (FILE, BLOB.id)})})}, f"nodes/8/F/{STEM}", "belong"),
    (
        {"8": (FOLDER, {"F": (FOLDER, {f"{STEM.lower()}.md": (FILE, BLOB.id)})})},
        f"nodes/8/F/{STEM.lower()}.md",
        "does not belong there",
    ),
    (
        {"8": (FOLDER, {"F": (FOLDER, {f"{STEM}.json": (0o120000, BLOB.id)})})},
        f"nodes/8/F/{STEM}.json",
        "has mode 120000, and a node's file has 100644",
    ),
]


@pytest.mark.parametrize(("entries", "path", "problem"), ODD, ids=[path for _, path, _ in ODD])
def test_file_that_is_no_node_is_reported(entries: Any, path: str, problem: str) -> None:
    objects = MemoryObjectStore()
    place = raw(tree(objects, entries))

    (change,) = NodeFolders(objects).compare(None, place, keep_old=True)
    assert (change.kind, change.path) == ("odd", path)
    assert problem in change.problem
    assert told(objects, place, place) == []


def test_file_that_changes_is_replaced() -> None:
    objects = MemoryObjectStore()
    other = Blob.from_string(b"y")
    objects.add_objects([(other, None)])
    places = [
        raw(tree(objects, {"8": (FOLDER, {"F": (FOLDER, {f"{STEM}.md": (FILE, blob.id)})})}))
        for blob in (BLOB, other)
    ]

    assert told(objects, *places) == [("replaced", f"nodes/8/F/{STEM}.md")]


def test_missing_folder_is_reported_and_the_others_checked() -> None:
    objects = MemoryObjectStore()
    entries = {
        "8": (FOLDER, ObjectID(b"1" * 40)),
        "9": (FOLDER, {"F": (FOLDER, {f"{STEM}.md": (FILE, BLOB.id)})}),
    }
    place = raw(tree(objects, entries))

    assert told(objects, None, place) == [
        ("damaged", "nodes/8"),
        ("added", f"nodes/9/F/{STEM}.md"),
    ]
    with refuses("damaged-object", match="1111 is missing"):
        NodeFolders(objects).find(place, NodeHash("8F" + STEM))
    # A folder that was missing before is no problem of the present one.
    whole = raw(tree(objects, entries | {"8": (FOLDER, {"F": (FOLDER, {})})}))
    assert told(objects, place, whole) == []


def entry(mode: bytes, name: bytes, oid: ObjectID) -> bytes:
    return mode + b" " + name + b"\0" + raw(oid)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"garbage", "is not a tree that git would write"),
        (entry(b"40000", b"8", BLOB.id)[:-1], "is not a tree that git would write"),
        (entry(b"40000", b"8", BLOB.id) * 2, "is not a tree that git would write"),
        (entry(b"40000", b"9", BLOB.id) + entry(b"40000", b"8", BLOB.id), "out of order"),
        (entry(b"100644", b"b", BLOB.id) + entry(b"100644", b"a", BLOB.id), "out of order"),
        (entry(b"100644", b"a/b", BLOB.id), "is not a tree that git would write"),
    ],
)
def test_tree_that_git_would_not_write_is_damaged(
    content: bytes, problem: str, store: Store
) -> None:
    with refuses("damaged-object", match=problem):
        NodeFolders(store.objects).get(raw(put_raw(store, "tree", content)))


def test_blob_is_no_tree() -> None:
    objects = MemoryObjectStore()
    objects.add_objects([(BLOB, None)])

    with refuses("damaged-object", match="is not a tree"):
        NodeFolders(objects).get(raw(BLOB.id))
