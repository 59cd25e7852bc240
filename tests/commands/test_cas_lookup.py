from pathlib import Path
from typing import Any

import pytest
from cas_nodes import (
    NOWHERE,
    SIGNING,
    add_misnamed,
    add_notes,
    add_unchecked,
    hand_over,
    put_person,
)
from dulwich.objects import Commit, ObjectID, ShaFile

from uwf_git.commands.cas_lookup import NodeLookup, open_keeper
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN_NODES, META, TEXT
from uwf_git.model.node import build_node
from uwf_git.store.loose_nodes import NODES_REF, NoSuchNode
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store, create_store, memory_store

THREAD = "refs/threads/01J00000000000000000000001"
OTHER = "refs/archive/01J00000000000000000000002"


@pytest.mark.parametrize("ref", [NODES_REF, "refs/workflows/a", THREAD, OTHER])
def test_node_is_found_wherever_a_ref_keeps_it(ref: str) -> None:
    store = memory_store()
    name = add_unchecked(store, TEXT, "hello")
    if ref != NODES_REF:
        hand_over(store, ref)

    assert NodeLookup(store).get(name).payload == "hello"


def test_builtin_schemas_are_in_a_store_that_holds_nothing() -> None:
    lookup = NodeLookup(memory_store())

    assert [lookup.find(node.hash) for node in BUILTIN_NODES] == list(BUILTIN_NODES)


def test_node_that_no_ref_keeps_is_none_or_refused() -> None:
    lookup = NodeLookup(memory_store())

    assert lookup.find(NOWHERE) is None
    with pytest.raises(NoSuchNode, match=NOWHERE):
        lookup.get(NOWHERE)


def test_whole_copy_is_given_though_another_is_damaged() -> None:
    store = memory_store()
    node = build_node(TEXT, "right", timestamp=0)
    add_misnamed(store, node.hash, TEXT, "wrong")
    hand_over(store, THREAD)
    add_unchecked(store, TEXT, "right")
    hand_over(store, OTHER)

    assert NodeLookup(store).get(node.hash).payload == "right"


def test_damage_is_told_if_no_copy_is_whole() -> None:
    store = memory_store()
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    with pytest.raises(StoreDamaged, match=f"{NOWHERE} holds other content"):
        NodeLookup(store).find(NOWHERE)


def test_ref_whose_folder_is_gone_hides_nothing_and_holds_nothing() -> None:
    store = memory_store()
    name = add_unchecked(store, TEXT, "hello")
    hand_over(store, OTHER)
    oid = write_commit_of_nothing(store)
    assert store.refs.create(THREAD, oid)
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

    assert open_keeper(store, THREAD) is None
    assert NodeLookup(store).get(name).payload == "hello"


def test_references_are_the_type_and_what_the_payload_points_at() -> None:
    store = memory_store()
    note = add_unchecked(store, TEXT, "hello")
    person = put_person(store, name="Ada", note={"$ref": note})
    lookup = NodeLookup(store)
    node = lookup.get(person)

    assert lookup.list_references(node) == [node.type, note]
    assert lookup.list_references(lookup.get(META)) == []


def test_references_of_a_node_whose_type_is_missing_are_the_type_alone() -> None:
    store = memory_store()
    name = add_unchecked(store, NOWHERE, {"$ref": TEXT})
    lookup = NodeLookup(store)

    assert lookup.list_references(lookup.get(name)) == [NOWHERE]


class CountedObjects:
    """The objects of a store, noting which are read."""

    def __init__(self, objects: ObjectStore) -> None:
        self.objects = objects
        self.read: list[ObjectID] = []

    def __contains__(self, oid: ObjectID) -> bool:
        return oid in self.objects

    def __getitem__(self, oid: ObjectID) -> ShaFile:
        self.read.append(oid)
        return self.objects[oid]

    def add_objects(self, *args: Any) -> object:
        return self.objects.add_objects(*args)


def test_refs_are_opened_once_and_only_as_far_as_needed() -> None:
    store = memory_store()
    for number in range(50):
        add_unchecked(store, TEXT, f"far {number}")
        hand_over(store, f"refs/threads/01J000{number:020d}")
    names = add_notes(store, 100)
    objects = CountedObjects(store.objects)
    lookup = NodeLookup(Store(store.path, objects, store.refs, store.config))

    lookup.get(names[0])
    assert len(objects.read) <= 10
    lookup.find(NOWHERE)
    assert len(objects.read) <= 10 + 51 * 5
    objects.read.clear()
    # The ref that gave the last node is asked first, whatever others have been opened.
    for name in names:
        lookup.get(name)
    assert len(objects.read) <= 100 * 5
