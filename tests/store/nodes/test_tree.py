import pytest
from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.story import list_tree, put_raw

from uwf_git.model.builtin import META, TEXT
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node
from uwf_git.store.nodes.tree import (
    FILE_MODE,
    TREE_MODE,
    DamagedNode,
    add_nodes,
    encode_node,
    find_names,
    find_node,
)
from uwf_git.store.objects.objects import get_blob, get_tree
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


def test_a_node_lies_below_the_first_two_symbols_of_its_name() -> None:
    objects = MemoryObjectStore()
    text, schema = text_node("hello"), ANY
    found = list(list_tree(objects, grown(objects, text, schema)))
    names = sorted(
        [
            f"{text.hash[0]}/{text.hash[1]}/{text.hash[2:]}.md",
            f"{schema.hash[0]}/{schema.hash[1]}/{schema.hash[2:]}.json",
        ]
    )
    assert [line.partition("\t")[2] for line in found] == names
    assert all(line.startswith("100644 blob ") for line in found)


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


def test_an_empty_folder_has_nothing() -> None:
    objects = MemoryObjectStore()
    assert find_node(objects, None, ANY.hash) is None
    assert list(find_names(objects, None, "")) == []
    assert find_node(objects, grown(objects), ANY.hash) is None


def test_a_neighbour_is_not_taken_for_the_node() -> None:
    objects = MemoryObjectStore()
    folder = grown(objects, ANY)
    for name in (
        NodeHash(ANY.hash[:-1] + ("0" if ANY.hash[-1] != "0" else "1")),
        NodeHash(ANY.hash[0] + ("0" if ANY.hash[1] != "0" else "1") + ANY.hash[2:]),
        NodeHash(("0" if ANY.hash[0] != "0" else "1") + ANY.hash[1:]),
    ):
        assert find_node(objects, folder, name) is None


def test_a_node_that_is_there_keeps_its_first_blob() -> None:
    objects = MemoryObjectStore()
    first = text_node("same", timestamp=1)
    folder = grown(objects, first)
    growth = add_nodes(objects, folder, [text_node("same", timestamp=2)])
    assert growth.nodes == folder
    assert growth.blobs == {first.hash: Blob.from_string(encode_node(first)[1]).id}
    assert not any(isinstance(each, Blob) for each in growth.objects)


def test_the_same_node_twice_is_added_once() -> None:
    objects = MemoryObjectStore()
    growth = add_nodes(objects, None, [text_node("same", 1), text_node("same", 2)])
    assert sum(isinstance(each, Blob) for each in growth.objects) == 1


def test_nothing_is_written_by_building() -> None:
    objects = MemoryObjectStore()
    add_nodes(objects, None, [ANY])
    assert list(objects) == []


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


def test_odd_entries_keep_their_places() -> None:
    objects = MemoryObjectStore()
    node = text_node("hello")
    first = node.hash[0]
    blob = Blob.from_string(b"x")
    tree = Tree()
    for name in (first + "-", first + "0", "~"):
        tree[name.encode()] = (FILE_MODE, blob.id)
    folder = get_tree(objects, grown(objects, node, onto=stored(objects, blob, tree)))
    expected = Tree()
    for entry in folder.items():
        expected[entry.path] = (entry.mode, entry.sha)

    assert len(folder) == 4
    assert folder.as_raw_string() == expected.as_raw_string()
