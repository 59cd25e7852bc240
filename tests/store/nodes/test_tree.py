"""Raw entries are put where git wants them."""

from typing import Any

import pytest
from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.story import put_raw

from uwf_git.model.builtin import META, TEXT
from uwf_git.model.node import Node, build_node
from uwf_git.store.nodes import (
    FILE_MODE,
    TREE_MODE,
    DamagedNode,
    add_nodes,
    build_tree,
    find_names,
    find_node,
    parse_entry,
    put_entry,
    unite_nodes,
)
from uwf_git.store.objects.objects import ObjectStore, get_blob, get_tree
from uwf_git.store.store import Store

ANY = build_node(META, {}, timestamp=0)
MISSING = ObjectID(b"1" * 40)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def text_node(text: str, timestamp: int = 0) -> Node:
    return build_node(TEXT, text, timestamp=timestamp)


def grown(objects: MemoryObjectStore, *nodes: Node, onto: ObjectID | None = None) -> ObjectID:
    growth = add_nodes(objects, onto, nodes)
    objects.add_objects([(each, None) for each in growth.objects])
    return growth.nodes


def stored(objects: MemoryObjectStore, *made: ShaFile) -> ObjectID:
    objects.add_objects([(each, None) for each in made])
    return made[-1].id


def a_tree(**entries: tuple[int, ObjectID]) -> Tree:
    tree = Tree()
    for name, (mode, oid) in entries.items():
        tree[name.replace("_", ".").encode()] = (mode, oid)
    return tree


@given(one=st.lists(texts, max_size=20), other=st.lists(texts, max_size=20))
def test_what_was_added_is_found_in_any_order_and_any_portions(
    one: list[str], other: list[str]
) -> None:
    objects = MemoryObjectStore()
    nodes = {node.hash: node for node in map(text_node, one + other)}
    in_turns = grown(objects, *map(text_node, other), onto=grown(objects, *map(text_node, one)))
    assert in_turns == grown(objects, *reversed(nodes.values()))
    assert [find_node(objects, in_turns, name) for name in nodes] == list(nodes.values())
    assert list(find_names(objects, in_turns, "")) == sorted(nodes)


def test_names_are_found_by_their_beginning() -> None:
    objects = MemoryObjectStore()
    nodes = sorted(text_node(str(number)).hash for number in range(300))
    folder = grown(objects, *(text_node(str(number)) for number in range(300)))
    for prefix in ("", nodes[0][:1], nodes[7][:2], nodes[7][:3], nodes[7], "G"):
        expected = [name for name in nodes if name.startswith(prefix)]
        assert list(find_names(objects, folder, prefix)) == expected


def test_one_name_never_has_two_payloads() -> None:
    objects = MemoryObjectStore()
    folder = grown(objects, ANY)
    twin = build_node(META, {"title": "twin"}, timestamp=0)._replace(hash=ANY.hash)
    with refuses("node-collision", match=ANY.hash) as caught:
        add_nodes(objects, folder, [twin])
    assert caught.value.exit_status == 5


def test_a_damaged_node_is_not_taken_for_the_same() -> None:
    objects = MemoryObjectStore()
    place = a_tree(**{f"{ANY.hash[2:]}_json": (FILE_MODE, stored(objects, Blob.from_string(b"{")))})
    inner = a_tree(**{ANY.hash[1]: (TREE_MODE, stored(objects, place))})
    outer = a_tree(**{ANY.hash[0]: (TREE_MODE, stored(objects, inner))})
    folder = stored(objects, outer)
    with pytest.raises(DamagedNode, match=ANY.hash):
        add_nodes(objects, folder, [ANY])
    with pytest.raises(DamagedNode, match=ANY.hash):
        find_node(objects, folder, ANY.hash)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("kind", ["missing", "other"])
def test_an_invalid_folder_is_reported_by_its_object_id(level: int, kind: str) -> None:
    objects = MemoryObjectStore()
    wrong = MISSING if kind == "missing" else stored(objects, Blob.from_string(b"a blob"))
    folder = wrong
    for part in list(ANY.hash[:2])[:level][::-1]:
        folder = stored(objects, a_tree(**{part: (TREE_MODE, folder)}))
    for look in (
        lambda: find_node(objects, folder, ANY.hash),
        lambda: list(find_names(objects, folder, ANY.hash)),
        lambda: add_nodes(objects, folder, [ANY]),
    ):
        with refuses("damaged-object", match=wrong.decode()):
            look()


@pytest.mark.parametrize("wrong", ["missing", "tree"])
def test_an_invalid_blob_is_reported_by_its_object_id(wrong: str) -> None:
    objects = MemoryObjectStore()
    oid = MISSING if wrong == "missing" else stored(objects, a_tree())
    with refuses("damaged-object", match=oid.decode()):
        get_blob(objects, oid)


@pytest.mark.parametrize(
    "content",
    [b"100644", b"x \0" + b"1" * 20, b"100644 a\0short", b"9 a\0" + b"1" * 20, b"40000 a"],
)
def test_a_tree_that_git_would_not_write_is_damage(store: Store, content: bytes) -> None:
    oid = put_raw(store, "tree", content)
    with refuses("damaged-object", match=oid.decode()):
        get_tree(store.objects, oid)


def test_files_that_are_no_nodes_are_not_listed() -> None:
    objects = MemoryObjectStore()
    blob = stored(objects, Blob.from_string(b""))
    leaf = a_tree(README=(FILE_MODE, blob), **{"0" * 11: (FILE_MODE, blob)})
    leaf[b"\xff.json"] = (FILE_MODE, blob)
    inner = a_tree(**{"0": (TREE_MODE, stored(objects, leaf))})
    folder = stored(objects, a_tree(**{"0": (TREE_MODE, stored(objects, inner))}))
    assert list(find_names(objects, folder, "")) == []


@given(st.lists(st.text(st.characters(codec="ascii"), max_size=3), max_size=60, unique=True))
def test_folders_are_written_as_dulwich_would_write_them(many: list[str]) -> None:
    objects = MemoryObjectStore()
    folder: ObjectID | None = None
    for text in many:
        folder = grown(objects, text_node(text), onto=folder)
    waiting = [] if folder is None else [folder]
    while waiting:
        raw = get_tree(objects, waiting.pop())
        tree = Tree()
        for entry in raw.items():
            tree[entry.path] = (entry.mode, entry.sha)
            waiting += [entry.sha] if entry.mode == TREE_MODE else []
        assert (tree.id, tree.as_raw_string()) == (raw.id, raw.as_raw_string())


NAMES = st.text("A.01/b", min_size=1, max_size=3).map(lambda name: name.replace("/", "-").encode())
# Ids with spaces and zeros look like the beginnings of entries.
IDS = st.lists(st.sampled_from([0x00, 0x20, 0x31, 0x41]), min_size=20, max_size=20).map(bytes)
ENTRIES = st.lists(st.tuples(NAMES, st.sampled_from([0o100644, 0o40000]), IDS), max_size=12)


@given(ENTRIES)
def test_a_tree_is_the_one_that_dulwich_writes(added: list[tuple[bytes, int, bytes]]) -> None:
    tree, entries = Tree(), list[bytes]()

    for name, mode, raw in added:
        oid = ObjectID(raw.hex().encode())
        tree[name] = mode, oid
        put_entry(entries, mode, name, oid)

    assert build_tree(entries).id == tree.id
    assert {parse_entry(each)[0] for each in entries} == {name for name, _, _ in added}


# Folders of nodes united: every node is there, whoever unites them gets the same folder.


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


def test_of_two_files_of_a_node_the_earlier_one_stays(store: Store) -> None:
    early, late = text("same", timestamp=5), text("same", timestamp=9)
    united = written(store, [folder(store.objects, late), folder(store.objects, early)])

    found = find_node(store.objects, united, early.hash)
    assert found is not None
    assert found.timestamp == 5


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
