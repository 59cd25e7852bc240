"""Node lookup, with an index and without; test_index.py tests how the index is kept."""

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cas_nodes import NOWHERE, SIGNING, add_misnamed, add_unchecked, hand_over
from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, Commit, ObjectID, Tree
from fresh_store import fresh_store
from hypothesis import example, given
from hypothesis import strategies as st
from refusing import refuses
from store.small_packs import damage
from store.story import put_raw, signed

from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN, BUILTIN_NODES, META, META_NODE, TEXT
from uwf_git.model.names import NodeHash, Oid
from uwf_git.model.node import Node, build_node
from uwf_git.store.git.config import set_config
from uwf_git.store.index import NO_ADVICE, Advice
from uwf_git.store.lookup import (
    NODES_REF,
    NodeFolders,
    NodeLookup,
    NoSuchNode,
    is_root_ref,
    list_loose_roots,
    list_nodes,
    list_packed_roots,
    list_root_refs,
    object_id,
    open_root,
    put_nodes,
)
from uwf_git.store.nodes import TREE_MODE, add_nodes, encode_node
from uwf_git.store.objects.commit import (
    CommitDraft,
    find_entry,
    parse_trailers,
    read_commit,
    subject_of,
    write_commit,
)
from uwf_git.store.refs import Refs
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.tidy import pack_refs

THREAD = "refs/threads/01J00000000000000000000001"
OTHER = "refs/archive/01J00000000000000000000002"


def test_builtin_schemas_are_in_a_store_that_holds_nothing() -> None:
    lookup = NodeLookup(fresh_store())

    assert [lookup.find(node.hash) for node in BUILTIN_NODES] == list(BUILTIN_NODES)


def test_whole_copy_is_given_though_another_is_damaged(store: Store) -> None:
    node = build_node(TEXT, "right", timestamp=0)
    add_misnamed(store, node.hash, TEXT, "wrong")
    hand_over(store, THREAD)
    add_unchecked(store, TEXT, "right")
    hand_over(store, OTHER)

    assert NodeLookup(store).get(node.hash).payload == "right"


def test_damage_is_reported_if_no_copy_is_whole(store: Store) -> None:
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    with pytest.raises(StoreDamaged, match=f"{NOWHERE} holds other content"):
        NodeLookup(store).find(NOWHERE)


def test_ref_whose_folder_is_gone_hides_nothing_and_holds_nothing(store: Store) -> None:
    name = add_unchecked(store, TEXT, "hello")
    hand_over(store, OTHER)
    assert store.refs.create(THREAD, write_commit_of_nothing(store))
    lookup = NodeLookup(store)

    assert lookup.get(name).payload == "hello"
    assert lookup.find(NOWHERE) is None


def write_commit_of_nothing(store: Store) -> Oid:
    commit = Commit()
    commit.tree = ObjectID(b"1" * 40)
    commit.author = commit.committer = SIGNING.author
    commit.author_time = commit.commit_time = 0
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"its tree is missing"
    store.objects.add_objects([(commit, None)])
    return Oid(commit.id.decode())


def test_ref_that_cannot_be_opened_hides_nothing(tmp_path: Path) -> None:
    store = create_store(str(tmp_path / "s.git"))
    name = add_unchecked(store, TEXT, "hello")
    threads = tmp_path / "s.git" / "refs" / "threads"
    threads.mkdir()
    (threads / "01J00000000000000000000001").write_text("no object id")
    hand_over(store, OTHER)

    assert open_root(store, THREAD) is None
    assert NodeLookup(store).get(name).payload == "hello"


# The tests below compare lookups by the index with lookups that search all refs.


class NoIndex:
    """An index that never knows anything."""

    def advise(self, _name: NodeHash) -> Advice:
        return NO_ADVICE

    def list_names(self, _prefix: str) -> None:
        return None

    def learn(self, _name: NodeHash, _ref: str) -> None:
        pass

    def forget(self, _name: NodeHash) -> None:
        pass


TEXTS = [str(number) for number in range(6)]
HASHES = [build_node(TEXT, text, timestamp=0).hash for text in TEXTS]
ASKED = [*HASHES, NOWHERE]
THREADS = [f"01J{number:023}" for number in range(3)]
PLACES = [
    NODES_REF,
    *(f"refs/threads/{thread}" for thread in THREADS),
    *(f"refs/archive/{thread}" for thread in THREADS),
    "refs/workflows/a",
    "refs/workflows/b",
]

PLACE = st.sampled_from(PLACES)
CHANGES = st.one_of(
    # One name may have several blobs, which differ in their time.
    st.tuples(st.just("keep"), PLACE, st.integers(0, 5), st.integers(0, 2)),
    st.tuples(st.just("keep"), PLACE, st.integers(0, 5), st.integers(0, 2)),
    st.tuples(st.just("archive"), st.sampled_from(THREADS)),
    st.tuples(st.just("delete"), PLACE),
    st.tuples(st.just("go back"), PLACE, st.integers(0, 9)),
    st.tuples(st.just("pack refs")),
    st.tuples(st.just("damage"), st.integers(0, 5), st.integers(0, 2)),
    st.tuples(st.just("damage folder"), PLACE),
    st.tuples(st.just("repair")),
    st.tuples(st.just("index gone")),
    st.tuples(st.just("index garbled"), st.integers(0, 2**32)),
    st.tuples(st.just("ask"), st.sampled_from(ASKED)),
    st.tuples(st.just("ask"), st.sampled_from(ASKED)),
    st.tuples(st.just("list"), st.sampled_from(ASKED)),
)


class Room:
    """A store under every kind of change."""

    def __init__(self, path: Path) -> None:
        create_store(str(path))
        set_config(str(path / "config"), "uwf.fsync", "false")
        self.path = path
        self.past: list[tuple[str, Oid]] = []
        self.whole: dict[Path, bytes] = {}
        self.store = open_store(str(path))

    def change(self, what: str, *how: Any) -> None:
        """Make one change, if it can be made."""
        getattr(self, "_" + what.replace(" ", "_"))(*how)
        # What is damaged must not be remembered as whole.
        self.store = open_store(str(self.path))

    def _keep(self, ref: str, number: int, timestamp: int) -> None:
        seen = self.store.refs.find(ref)
        objects = self.store.objects
        try:
            parent = None if seen is None else read_commit(objects, seen)
            # A version of a workflow keeps nothing of the one before.
            before = None if parent is None or "workflows" in ref else parent
            folder = None if before is None else find_entry(objects, before, "nodes")
            node = build_node(TEXT, TEXTS[number], timestamp=timestamp)
            growth = add_nodes(objects, folder, [node])
        except StoreDamaged:
            return
        tree = Tree()
        tree[b"nodes"] = (TREE_MODE, growth.nodes)
        parents = () if parent is None else (parent,)
        oid = write_commit(objects, CommitDraft(tree, parents, b"keep\n", growth.objects), SIGNING)
        self.past.append((ref, oid))
        if seen is None:
            assert self.store.refs.create(ref, oid)
        else:
            assert self.store.refs.advance(ref, seen=seen, to=oid)

    def _archive(self, thread: str) -> None:
        seen = self.store.refs.find(f"refs/threads/{thread}")
        if seen is not None:
            to = f"refs/archive/{thread}"
            self.store.refs.move(f"refs/threads/{thread}", seen=seen, to_name=to, to=seen)

    def _delete(self, ref: str) -> None:
        seen = self.store.refs.find(ref)
        if seen is not None:
            assert self.store.refs.delete(ref, seen=seen)

    def _go_back(self, ref: str, number: int) -> None:
        """Move a ref to an earlier value of any ref, as only other programs do."""
        if self.past:
            _ref, oid = self.past[number % len(self.past)]
            self._delete(ref)
            assert self.store.refs.create(ref, oid)

    def _pack_refs(self) -> None:
        pack_refs(self.store)

    def _damage(self, number: int, timestamp: int) -> None:
        _suffix, content = encode_node(build_node(TEXT, TEXTS[number], timestamp=timestamp))
        self._overwrite(Blob.from_string(content).id)

    def _damage_folder(self, ref: str) -> None:
        oid = self.store.refs.find(ref)
        if oid is not None:
            with suppress(StoreDamaged):
                commit = read_commit(self.store.objects, oid)
                self._overwrite(find_entry(self.store.objects, commit, "nodes") or commit.tree)

    def _overwrite(self, oid: ObjectID) -> None:
        path = self.path / "objects" / oid[:2].decode() / oid[2:].decode()
        if path.exists():
            self.whole.setdefault(path, path.read_bytes())
            damage(path, b"damaged")

    def _repair(self) -> None:
        """Restore the damaged objects, as a fetch would."""
        for path, content in self.whole.items():
            path.write_bytes(content)

    def _index_gone(self) -> None:
        self._index.unlink(missing_ok=True)

    def _index_garbled(self, seed: int) -> None:
        if not self._index.exists():
            return
        dice, content = random.Random(seed), self._index.read_bytes()
        at = dice.randrange(len(content) + 1)
        spoiled = dice.randbytes(dice.choice([1, 50, 5000]))
        tail = dice.choice([b"", content[at + len(spoiled) :]])
        self._index.write_bytes(content[:at] + spoiled + tail)

    @property
    def _index(self) -> Path:
        return self.path / "uwf" / "nodes.sqlite"

    def _ask(self, name: NodeHash) -> None:
        walked, told = answer(self.walk(), name), answer(NodeLookup(self.store), name)
        known = any(root.lists(name) for root in self.walk().roots())
        # Where a folder cannot be read, the index may remember what was in it, or that it was
        # not: a walk has to report damage.
        assert told == walked or (walked == DAMAGED and told is None and not known)

    def _list(self, name: NodeHash) -> None:
        for length in (1, 2, 5, 12):
            walked, told = (
                meant(lookup, name[:length]) for lookup in (self.walk(), NodeLookup(self.store))
            )
            assert told >= walked
            # More only where a folder cannot be read.
            for each in told - walked:
                assert answer(self.walk(), each) == DAMAGED

    def walk(self) -> NodeLookup:
        """Return a lookup that searches all refs."""
        lookup = NodeLookup(self.store)
        vars(lookup)["_index"] = NoIndex()
        return lookup


DAMAGED = "damaged"


def answer(lookup: NodeLookup, name: NodeHash) -> Any:
    try:
        node = lookup.find(name)
    except StoreDamaged:
        return DAMAGED
    return None if node is None else (node.hash, node.type, node.payload)


def meant(lookup: NodeLookup, prefix: str) -> set[NodeHash]:
    try:
        return {lookup.resolve(prefix)}
    except NoSuchNode:
        return set()
    except Refused as error:
        return set(error.facts["matches"])


@given(st.lists(CHANGES, max_size=25))
@example(
    [
        # What could not be read when it was looked at is there once it can be.
        ("keep", PLACES[1], 0, 0),
        ("damage folder", PLACES[1]),
        ("ask", NOWHERE),
        ("repair",),
    ]
)
@example(
    [
        # Both keep it; the index knows of it by the one that goes, and comes back as it was.
        ("keep", PLACES[1], 0, 0),
        ("keep", PLACES[2], 0, 1),
        ("ask", NOWHERE),
        ("delete", PLACES[2]),
        ("ask", HASHES[0]),
        ("delete", PLACES[1]),
        ("ask", HASHES[0]),
        ("go back", PLACES[2], 1),
    ]
)
def test_look_ups_by_the_index_and_by_a_walk_agree(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[Any, ...]]
) -> None:
    room = Room(tmp_path_factory.mktemp("room") / "store.git")
    for change in changes:
        room.change(*change)
    for name in ASKED:
        room.change("ask", name)
        room.change("list", name)


# Nodes put by hand, and found anywhere; what damage does to that is in test_damage.py.


ONE, TWO = (build_node(TEXT, text, timestamp=5) for text in ("one", "two"))


def put(store: Store, *nodes: Node) -> bool:
    return put_nodes(store, nodes, signed(0))


def message_of(store: Store) -> bytes:
    commit = store.refs.find(NODES_REF)
    assert commit is not None
    return read_commit(store.objects, commit).message


def test_the_built_in_nodes_are_there_before_anything_was_put(store: Store) -> None:
    assert NodeLookup(store).find(META) == META_NODE
    assert list(list_nodes(store)) == []
    assert NodeLookup(store).resolve(META[:12]) == META


def test_put_nodes_are_listed_and_described(store: Store) -> None:
    assert put_nodes(store, (node for node in (ONE, TWO)), signed(0))
    assert set(list_nodes(store)) == {*BUILTIN, ONE.hash, TWO.hash}
    assert subject_of(message_of(store)) == f"cas: put {' '.join(sorted([ONE.hash, TWO.hash]))}"
    assert parse_trailers(message_of(store)) == {"Uwf-Event": "put", "Uwf-Format": "2"}


def test_a_name_with_another_payload_is_refused(store: Store) -> None:
    put(store, ONE)
    with refuses("node-collision", match=ONE.hash):
        put(store, TWO._replace(hash=ONE.hash))


class _Restless(Refs):
    """Refs that another process moves each time before we do."""

    def __init__(self, git_dir: str, times: int) -> None:
        super().__init__(git_dir, durable=False)
        self.store: Store | None = None
        self.times = times

    def create(self, name: str, to: Oid) -> bool:
        self._interfere()
        return super().create(name, to)

    def advance(self, name: str, *, seen: Oid | None, to: Oid) -> bool:
        self._interfere()
        return super().advance(name, seen=seen, to=to)

    def _interfere(self) -> None:
        if self.store is not None and self.times:
            self.times -= 1
            store, self.store = self.store, None
            put(store, build_node(TEXT, f"other {self.times}", timestamp=0))
            self.store = store


def restless(store: Store, *, times: int) -> Store:
    refs = _Restless(store.path, times)
    refs.store = store._replace(refs=refs)
    return refs.store


def test_what_others_put_meanwhile_stays_too(store: Store) -> None:
    store = restless(store, times=3)
    assert put(store, ONE)
    others = {build_node(TEXT, f"other {number}", timestamp=0).hash for number in range(3)}
    assert {ONE.hash, *others} <= set(list_nodes(store))


def test_putting_gives_up_after_many_lost_races(store: Store) -> None:
    with refuses("nodes-moved", status=4):
        put(restless(store, times=1000), ONE)


def test_a_beginning_that_several_have_is_refused_with_some_of_them(store: Store) -> None:
    nodes = [build_node(TEXT, str(number), timestamp=0) for number in range(400)]
    put(store, *nodes)
    matches = sorted(node.hash for node in [*nodes, *BUILTIN.values()] if node.hash[0] == "0")
    with refuses("ambiguous-node") as caught:
        NodeLookup(store).resolve("0")
    assert caught.value.facts["matches"] == matches
    assert caught.value.message.startswith(f"{len(matches)} nodes begin with 0: {matches[0]}, ")
    assert caught.value.message.endswith(f" and {len(matches) - 10} more")


# Which refs keep nodes, and the order in which they are searched.


OLD, NEW = "01J00000000000000000000001", "01J00000000000000000000002"
REFS = [
    "refs/cas/nodes",
    "refs/workflows/demo",
    f"refs/threads/{NEW}",
    f"refs/threads/{OLD}",
    f"refs/archive/{NEW}",
    f"refs/archive/{OLD}",
]


def write(store: Store, refs: list[str]) -> dict[str, Oid]:
    oids = {ref: Oid(f"{number:040x}") for number, ref in enumerate(refs, 1)}
    for ref, oid in oids.items():
        assert store.refs.create(ref, oid)
    return oids


def pack(store: Store, oids: dict[str, Oid]) -> None:
    lines = [f"{oid} {ref}\n" for ref, oid in sorted(oids.items())]
    header = "# pack-refs with: peeled fully-peeled sorted \n"
    # In one move, as git does it.
    with open(f"{store.path}/packed-refs.new", "w", encoding="utf-8") as file:
        file.write("".join([header, *lines]))
    os.replace(file.name, f"{store.path}/packed-refs")


def test_nodes_put_by_hand_come_first_and_the_newest_threads_before_the_older(store: Store) -> None:
    write(store, [*reversed(REFS), "refs/heads/main", "refs/uwf/remotes/o/threads/x"])
    assert list(list_root_refs(store)) == REFS


def test_loose_ones_are_listed_with_what_they_point_at(store: Store) -> None:
    oids = write(store, [*REFS, "refs/heads/main"])
    for name, content in (("broken", "no id"), (f"{NEW}.lock", "1" * 40)):
        with open(f"{store.path}/refs/threads/{name}", "w", encoding="ascii") as file:
            file.write(content)
    assert list(list_loose_roots(store)) == [(ref, oids[ref]) for ref in REFS]
    assert list(list_packed_roots(store)) == []


def test_packed_ones_are_listed_with_what_they_point_at(store: Store) -> None:
    oids = {ref: Oid(f"{number:040x}") for number, ref in enumerate([*REFS, "refs/tags/v1"], 1)}
    pack(store, oids)
    assert list(list_loose_roots(store)) == []
    assert dict(list_packed_roots(store)) == {ref: oids[ref] for ref in REFS}
    assert [ref for ref, _oid in list_packed_roots(store) if "/threads/" in ref] == REFS[2:4]


@pytest.mark.parametrize("ref", ["None", "refs/heads/main", "refs/threads/\0", "refs/threads/../x"])
def test_what_a_damaged_index_may_say_is_no_ref_that_keeps_nodes(ref: str) -> None:
    assert not is_root_ref(ref)
    assert all(is_root_ref(each) for each in REFS)


# Folders of nodes, side by side; the rules of what may lie in them.

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


def test_only_folders_that_differ_are_read(objects: MemoryObjectStore) -> None:
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


def test_file_that_changes_is_replaced(objects: MemoryObjectStore) -> None:
    other = Blob.from_string(b"y")
    objects.add_objects([(other, None)])
    places = [
        raw(tree(objects, {"8": (FOLDER, {"F": (FOLDER, {f"{STEM}.md": (FILE, blob.id)})})}))
        for blob in (BLOB, other)
    ]

    assert told(objects, *places) == [("replaced", f"nodes/8/F/{STEM}.md")]


def test_missing_folder_is_reported_and_the_others_checked(objects: MemoryObjectStore) -> None:
    entries = {
        "8": (FOLDER, ObjectID(b"1" * 40)),
        "9": (FOLDER, {"F": (FOLDER, {f"{STEM}.md": (FILE, BLOB.id)})}),
    }
    place = raw(tree(objects, entries))

    assert told(objects, None, place) == [("damaged", "nodes/8"), ("added", f"nodes/9/F/{STEM}.md")]
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


def test_blob_is_no_tree(objects: MemoryObjectStore) -> None:
    objects.add_objects([(BLOB, None)])

    with refuses("damaged-object", match="is not a tree"):
        NodeFolders(objects).get(raw(BLOB.id))
