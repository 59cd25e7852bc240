"""Raw entries are put where git wants them."""

import json
from typing import Any

import pytest
from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, ShaFile, Tree
from hypothesis import example, given
from hypothesis import strategies as st
from refusing import refuses
from store.story import AGENT, CLOSURE, WORKFLOW, put_raw

from uwf_git.model.builtin import BUILTIN_NODES, FLOW, META, RESULT_FLOW, STEP, TEXT, TYPES
from uwf_git.model.names import NodeHash
from uwf_git.model.node import MAX_NESTING, Node, build_node
from uwf_git.store.nodes import (
    FILE_MODE,
    TREE_MODE,
    DamagedNode,
    add_nodes,
    build_tree,
    check_node,
    decode_node,
    encode_node,
    find_names,
    find_node,
    identify_node,
    parse_entry,
    put_entry,
    unite_nodes,
)
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.objects.objects import ObjectStore, get_blob, get_tree
from uwf_git.store.store import Store

ANY = build_node(META, {}, timestamp=0)
MISSING = ObjectID(b"1" * 40)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def text_node(text: str, timestamp: int = 0) -> Node:
    return build_node(TEXT, text, timestamp=timestamp)


def grown(objects: ObjectStore, *nodes: Node, onto: ObjectID | None = None) -> ObjectID:
    growth = add_nodes(objects, onto, nodes)
    objects.add_objects([(each, None) for each in growth.objects])
    return growth.nodes


def stored(objects: ObjectStore, *made: ShaFile) -> ObjectID:
    objects.add_objects([(each, None) for each in made])
    return made[-1].id


def a_tree(**entries: tuple[int, ObjectID]) -> Tree:
    tree = Tree()
    for name, (mode, oid) in entries.items():
        tree[name.replace("_", ".").encode()] = (mode, oid)
    return tree


def nested(objects: ObjectStore, name: str, leaf: Tree) -> ObjectID:
    """Write *leaf* as the folder of the nodes whose names begin as *name* does."""
    inner = a_tree(**{name[1]: (TREE_MODE, stored(objects, leaf))})
    return stored(objects, a_tree(**{name[0]: (TREE_MODE, stored(objects, inner))}))


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


def test_names_are_found_by_their_beginning(objects: MemoryObjectStore) -> None:
    nodes = sorted(text_node(str(number)).hash for number in range(300))
    folder = grown(objects, *(text_node(str(number)) for number in range(300)))
    for prefix in ("", nodes[0][:1], nodes[7][:2], nodes[7][:3], nodes[7], "G"):
        expected = [name for name in nodes if name.startswith(prefix)]
        assert list(find_names(objects, folder, prefix)) == expected


def test_one_name_never_has_two_payloads(objects: MemoryObjectStore) -> None:
    folder = grown(objects, ANY)
    twin = build_node(META, {"title": "twin"}, timestamp=0)._replace(hash=ANY.hash)
    with refuses("node-collision", match=ANY.hash, status=5):
        add_nodes(objects, folder, [twin])


def test_a_damaged_node_is_not_taken_for_the_same(objects: MemoryObjectStore) -> None:
    place = a_tree(**{f"{ANY.hash[2:]}_json": (FILE_MODE, stored(objects, Blob.from_string(b"{")))})
    folder = nested(objects, ANY.hash, place)
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


def test_files_that_are_no_nodes_are_not_listed(objects: MemoryObjectStore) -> None:
    blob = stored(objects, Blob.from_string(b""))
    leaf = a_tree(README=(FILE_MODE, blob), **{"0" * 11: (FILE_MODE, blob)})
    leaf[b"\xff.json"] = (FILE_MODE, blob)
    assert list(find_names(objects, nested(objects, "00", leaf), "")) == []


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


def written(store: Store, folders: list[ObjectID]) -> ObjectID | None:
    united = unite_nodes(store.objects, folders)
    store.objects.add_objects([(each, None) for each in united.new])
    return united.nodes


def test_every_node_of_each_folder_is_there(store: Store) -> None:
    nodes = [text_node(str(number)) for number in range(40)]
    parts = [nodes[:25], nodes[10:30], nodes[30:]]

    united = written(store, [grown(store.objects, *part) for part in parts])

    assert all(find_node(store.objects, united, node.hash) == node for node in nodes)
    assert united == grown(store.objects, *nodes)


@given(parts=st.lists(st.lists(st.integers(0, 30), max_size=8), min_size=1, max_size=4))
def test_the_order_of_folders_does_not_matter(parts: list[list[int]]) -> None:
    objects: Any = MemoryObjectStore()
    folders = [
        grown(objects, *(text_node(str(n), timestamp=n + place) for n in part))
        for place, part in enumerate(parts)
    ]
    assert unite_nodes(objects, folders).nodes == unite_nodes(objects, folders[::-1]).nodes


@given(
    base=st.lists(st.integers(0, 60), max_size=30),
    parts=st.lists(st.lists(st.integers(0, 60), max_size=8), min_size=1, max_size=4),
)
def test_a_base_saves_work_and_changes_nothing(base: list[int], parts: list[list[int]]) -> None:
    objects: Any = MemoryObjectStore()
    before = [text_node(str(n)) for n in base]
    folders = [
        grown(objects, *before, *(text_node(str(n), timestamp=n + place) for n in part))
        for place, part in enumerate(parts)
    ]

    with_base = unite_nodes(objects, folders, grown(objects, *before))

    assert with_base.nodes == unite_nodes(objects, folders).nodes


def test_of_two_files_of_a_node_the_earlier_one_stays(store: Store) -> None:
    early, late = text_node("same", timestamp=5), text_node("same", timestamp=9)
    united = written(store, [grown(store.objects, late), grown(store.objects, early)])

    found = find_node(store.objects, united, early.hash)
    assert found is not None
    assert found.timestamp == 5


def test_two_payloads_under_one_name_are_an_error(store: Store) -> None:
    node = text_node("right")
    forged = Blob.from_string(b"---\ntype: %s\ntimestamp: 1\n---\nwrong" % TEXT.encode())
    leaf = a_tree(**{f"{node.hash[2:]}_md": (FILE_MODE, stored(store.objects, forged))})
    folder = nested(store.objects, node.hash, leaf)

    with refuses("node-collision") as caught:
        unite_nodes(store.objects, [grown(store.objects, node), folder])
    assert "uwf thread fork" in str(caught.value.hint)


def test_only_new_folders_are_to_be_written(store: Store) -> None:
    nodes = [text_node(str(number)) for number in range(40)]
    first = grown(store.objects, *nodes[:30])

    united = unite_nodes(store.objects, [first, grown(store.objects, nodes[30])])
    again = add_nodes(store.objects, first, nodes[:30])
    after = add_nodes(united.objects, united.nodes, [nodes[31]])

    # The root, and a folder in it: the one in that is the second folder's.
    assert len(united.new) == 2
    assert (again.objects, again.nodes) == ([], first)
    assert len(united.without(after.outgrown)) == 1
    assert after.nodes == grown(store.objects, *nodes[:32])


HELLO = build_node(TEXT, "hello\n", timestamp=7)
texts_blob = st.text(st.characters(exclude_categories=["Cs"]))
payloads = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts_blob,
    lambda inner: st.lists(inner) | st.dictionaries(texts_blob, inner),
    max_leaves=10,
)  # fmt: skip
timestamps = st.integers(0, 10**16 - 1)


def read_back(node: Node) -> Node:
    return decode_node(node.hash, encode_node(node)[1])


@given(text=texts_blob, timestamp=timestamps)
@example(text="", timestamp=0)
@example(text="\ufeffbom", timestamp=0)
@example(text=f"---\ntype: {TEXT}\ntimestamp: 0\n---\n", timestamp=0)
@example(text="\x0b\x0c\x1c\x85\u2028\u2029", timestamp=0)
def test_every_text_comes_back_as_it_was(text: str, timestamp: int) -> None:
    node = build_node(TEXT, text, timestamp=timestamp)
    suffix, content = encode_node(node)
    assert suffix == ".md"
    assert content.endswith(text.encode())
    assert decode_node(node.hash, content) == identify_node(content) == node


@given(payload=payloads, timestamp=timestamps)
def test_every_payload_comes_back_as_it_was(payload: Any, timestamp: int) -> None:
    node = build_node(ANY.hash, payload, timestamp=timestamp)
    suffix, content = encode_node(node)
    assert suffix == ".json"
    back = decode_node(node.hash, content)
    assert back == identify_node(content) == node
    assert repr(back.payload) == repr(node.payload)


@pytest.mark.parametrize("node", [*BUILTIN_NODES, *CLOSURE, WORKFLOW, AGENT], ids=lambda n: n.hash)
def test_the_nodes_of_a_workflow_come_back_as_they_were(node: Node) -> None:
    assert read_back(node) == node


def test_the_deepest_payload_comes_back() -> None:
    payload: Any = "bottom"
    for level in range(MAX_NESTING):
        payload = [payload] if level % 2 else {"a": payload}
    node = build_node(ANY.hash, payload, timestamp=0)
    assert read_back(node) == node


def document(**fields: Any) -> bytes:
    return json.dumps({"type": ANY.hash, "payload": 1, "timestamp": 0, **fields}).encode()


NAME = build_node(ANY.hash, 1, timestamp=0).hash


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "cannot be read"),
        (b"NaN", "NaN is not JSON"),
        (document(payload=float("inf")), "Infinity is not JSON"),
        (document(payload="\ud800"), "lone surrogate"),
        (document(payload=10**400), "no 64-bit float can hold"),
        (document(type=None), "its type is not a node hash"),
        (document(timestamp=-1), "its timestamp is not a natural number"),
        (document(timestamp=10**16), "its timestamp is not a natural number"),
        (document(timestamp=True), "its timestamp is not a natural number"),
        (document(more=1), "not an object of type, payload and timestamp"),
        (document(payload=2), "holds other content: its name would be "),
        (f"---\ntype: {TEXT}\ntimestamp: 0\n---\nhello".encode(), "holds other content"),
        (f"---\ntype: {TEXT}\ntimestamp: 00\n---\nhello".encode(), "cannot be read"),
        (f"---\ntype: {TEXT}\ntimestamp: 0\n---\n".encode() + b"\xff", "cannot be read"),
    ],
)
def test_blob_that_is_not_the_node_is_reported_with_its_name(content: bytes, words: str) -> None:
    with refuses(DamagedNode, status=5) as caught:
        decode_node(NAME, content)
    assert NAME in caught.value.message
    assert words in caught.value.message


@pytest.mark.parametrize("payload", [None, [], {}, {"role": "writer"}])
def test_a_node_without_the_parts_that_its_type_promises_is_damaged(payload: Any) -> None:
    node = build_node(STEP, payload, timestamp=0)
    content = encode_node(node)[1]
    with pytest.raises(DamagedNode, match="says that it is a StepNode, and is not"):
        decode_node(node.hash, content)
    with pytest.raises(ValueError, match="says that it is a StepNode, and is not"):
        identify_node(content)


@pytest.mark.parametrize("name", [FLOW, RESULT_FLOW])
def test_another_payload_under_the_name_of_a_schema_of_uwf_is_damage(name: NodeHash) -> None:
    check_node(TYPES[name])
    with pytest.raises(DamagedNode, match="has the name of a schema of uwf, and is another"):
        check_node(Node(name, META, {"type": "object"}, 0))


@given(content=st.binary() | texts_blob.map(str.encode) | payloads.map(encode_json))
def test_whatever_a_blob_holds_it_is_damage_and_nothing_else(content: bytes) -> None:
    with pytest.raises(DamagedNode):
        decode_node(NodeHash("0000000000000"), content)
    with pytest.raises(ValueError):  # noqa: PT011 - there are many ways to be no node
        identify_node(content)


@given(position=st.integers(0), change=st.integers(1, 255))
def test_no_byte_of_a_node_changes_unnoticed(position: int, change: int) -> None:
    """But those that say when: the time is not part of the name."""
    content = bytearray(encode_node(HELLO)[1])
    position %= len(content)
    content[position] ^= change
    try:
        assert decode_node(HELLO.hash, bytes(content))._replace(timestamp=7) == HELLO
    except DamagedNode:
        return


def test_a_name_in_another_blobs_place_is_noticed() -> None:
    with pytest.raises(DamagedNode, match=HELLO.hash):
        decode_node(ANY.hash, encode_node(HELLO)[1])
