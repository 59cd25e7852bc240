"""The top entries of a tree, and the allowed changes of its nodes."""

from dulwich.objects import Blob, ObjectID, Tree

from uwf_git.commands.verify.history import Location
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.model.builtin import BUILTIN_NODES, TEXT
from uwf_git.model.names import Oid
from uwf_git.model.node import Node, build_node
from uwf_git.store.lookup import RAW_FILE_MODE, RAW_TREE_MODE
from uwf_git.store.nodes import add_nodes
from uwf_git.store.store import Store

SITE = Location("refs/x", Oid("1" * 40))
NOTE = build_node(TEXT, "a note", timestamp=0)
WANTED = {"a": RAW_FILE_MODE, "nodes": RAW_TREE_MODE}


def raw(oid: ObjectID) -> bytes:
    return bytes.fromhex(oid.decode())


def nodes_of(store: Store, *nodes: Node) -> bytes:
    growth = add_nodes(store.objects, None, [*BUILTIN_NODES, *nodes])
    store.objects.add_objects([(obj, None) for obj in growth.objects])
    return raw(growth.nodes)


def top_of(store: Store, entries: dict[str, int]) -> bytes:
    blob, tree = Blob.from_string(b"x"), Tree()
    for name, mode in entries.items():
        tree[name.encode()] = (mode, blob.id)
    store.objects.add_objects([(blob, None), (tree, None)])
    return raw(tree.id)


def test_missing_strange_or_wrong_mode_entry_is_reported(store: Store) -> None:
    top = top_of(store, {"a": 0o100755, "b": 0o100644})
    found, troubles = TreeChecks(store).open_top(SITE, top, WANTED)

    assert found == {}
    assert [each.message for each in troubles] == [
        "a has mode 100755, and must have 100644",
        "the commit has b, which does not belong there",
        "the commit has no nodes",
    ]


def test_added_nodes_are_fine_and_removed_ones_are_reported(store: Store) -> None:
    small, large = nodes_of(store), nodes_of(store, NOTE)

    def told(before: bytes | None, now: bytes) -> list[str]:
        found = TreeChecks(store).check_nodes(SITE._replace(nodes=now), before)
        return [each.message for each in found]

    assert told(None, small) == told(small, large) == told(large, large) == []
    assert told(large, small) == [f"node {NOTE.hash} was in the commit before and is missing"]


def test_node_in_another_file_is_reported(store: Store) -> None:
    one, other = nodes_of(store, NOTE), nodes_of(store, NOTE._replace(timestamp=7))

    found = TreeChecks(store).check_nodes(SITE._replace(nodes=other), one)

    assert [each.message for each in found] == [
        f"node {NOTE.hash} was replaced: a node keeps the file it had first"
    ]
