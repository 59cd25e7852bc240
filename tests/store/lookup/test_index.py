"""Keeping the index up with the refs; test_lookup.py tests that lookups by it are right."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from commands.crowd import at_once
from store.loose import loose_file, loosen
from store.story import THREAD, Story, signed

from uwf_git.model.builtin import TEXT
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.store.index import NO_ADVICE, Advice, NodeIndex
from uwf_git.store.lookup import NODES_REF, NodeLookup, put_nodes
from uwf_git.store.refs import BadPackedRefs
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import ACTIVE

NOWHERE = build_node(TEXT, "nobody has this", timestamp=0).hash
NOTES = [build_node(TEXT, f"note {number}", timestamp=0) for number in range(20)]


def path_of(store: Store) -> Path:
    return Path(store.path, "uwf", "nodes.sqlite")


def put(store: Store, *nodes: Node) -> None:
    put_nodes(store, nodes, signed(0))


def likely(store: Store, node: Node) -> tuple[str, ...]:
    """Return the advice that a new command gets for *node*."""
    return NodeIndex(store).advise(node.hash).refs


def tell(store: Store, clock: Callable[[], int], ends: str) -> list[Story]:
    """Return threads that have a node of their own each, and share all others."""
    stories = [Story(store, clock, ThreadId(THREAD[:-1] + end)) for end in ends]
    for story in stories:
        story.step(text=f"only in {story.thread}")
    return stories


def test_what_could_not_be_read_is_named_and_looked_at_again(
    store: Store, clock: Callable[[], int]
) -> None:
    put(store, NOTES[0])
    story = Story(store, clock)
    loosen(store)
    tree = loose_file(store, story.snapshot.nodes)
    content = tree.read_bytes()
    tree.chmod(0o644)
    tree.write_bytes(b"")
    damaged = open_store(store.path)
    assert NodeIndex(damaged).advise(NOWHERE) == Advice((ACTIVE + THREAD,), is_all=True)
    assert NodeIndex(damaged).advise(NOTES[0].hash).refs == (NODES_REF,)
    tree.write_bytes(content)
    whole = open_store(store.path)
    assert NodeIndex(whole).advise(NOWHERE) == Advice((), is_all=True)
    assert likely(whole, story.snapshot.get_head_node())[0] == ACTIVE + THREAD


def test_names_are_listed_with_all_that_there_are_now(
    store: Store, clock: Callable[[], int]
) -> None:
    put(store, *NOTES[:10])
    story = Story(store, clock)
    assert NodeIndex(store).list_names(NOTES[0].hash) == ([NOTES[0].hash], ())
    put(store, *NOTES[10:])
    for node in (NOTES[15], story.snapshot.get_head_node()):
        found = NodeIndex(store).list_names(node.hash[:6])
        assert found is not None
        assert node.hash in found.names


def test_a_lost_row_is_noticed_before_a_node_is_said_to_be_nowhere(store: Store) -> None:
    put(store, *NOTES)
    assert NodeIndex(store).advise(NOWHERE).is_all
    with closing(sqlite3.connect(path_of(store), isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER node_dropped")
        connection.execute("DELETE FROM node")
    assert likely(store, NOTES[0]) == (NODES_REF,)


def test_a_ref_that_the_index_made_up_is_not_asked(store: Store) -> None:
    put(store, *NOTES)
    assert NodeIndex(store).advise(NOWHERE).is_all
    with closing(sqlite3.connect(path_of(store), isolation_level=None)) as connection:
        connection.execute("UPDATE source SET ref = 'refs/threads/../../config'")
    assert NodeIndex(store).advise(NOTES[0].hash) == Advice((), is_all=False)
    with closing(sqlite3.connect(path_of(store), isolation_level=None)) as connection:
        connection.execute("DELETE FROM source")
    assert NodeIndex(store).advise(NOTES[0].hash) == Advice((), is_all=False)


def test_an_index_that_cannot_be_made_gives_no_advice(store: Store) -> None:
    put(store, *NOTES)
    path_of(store).mkdir(parents=True)
    index = NodeIndex(store)
    assert index.advise(NOTES[0].hash) == NO_ADVICE
    assert index.list_names("0") is None
    index.learn(NOTES[0].hash, NODES_REF)
    index.forget(NOTES[0].hash)


def test_an_index_that_cannot_be_written_gives_no_advice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwf_git.store.index._BUSY_S", 0.01)
    put(store, NOTES[0])
    assert NodeIndex(store).advise(NOWHERE).is_all
    put(store, NOTES[1])
    with closing(sqlite3.connect(path_of(store), isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert likely(store, NOTES[0]) == (NODES_REF,)
        assert NodeIndex(store).advise(NOTES[1].hash) == NO_ADVICE
    assert likely(store, NOTES[1]) == (NODES_REF,)


def test_refs_that_are_no_text_are_asked_one_by_one(store: Store) -> None:
    put(store, NOTES[0])
    oid = store.refs.find(NODES_REF)
    with open(f"{store.path}/packed-refs", "wb") as file:
        file.write(f"# pack-refs with: peeled fully-peeled sorted \n{oid} ".encode())
        file.write(b"refs/workflows/\xff\n")
    assert NodeIndex(store).advise(NOWHERE) == Advice(("refs/workflows/\udcff",), is_all=True)


def test_refs_that_cannot_be_listed_are_an_error(store: Store) -> None:
    Path(store.path, "packed-refs").write_text("cut sho")
    with pytest.raises(BadPackedRefs):
        NodeIndex(store).advise(NOWHERE)


def test_processes_that_catch_up_or_spoil_it_at_once_all_find_their_nodes(
    store: Store, clock: Callable[[], int]
) -> None:
    stories = tell(store, clock, "0123456789")
    heads = [story.snapshot.get_head_node().hash for story in stories]

    def read_run_state(number: int) -> list[bool]:
        found = []
        for turn in range(5):
            if number == turn:
                path_of(store).write_bytes(b"spoiled")
            if number == turn + 5:
                path_of(store).unlink(missing_ok=True)
            lookup = NodeLookup(open_store(store.path))
            found += [lookup.find(heads[number]) is not None, lookup.find(NOWHERE) is None]
        return found

    assert all(all(found) for found in at_once(10, read_run_state))
    assert NodeLookup(store).find(heads[0]) is not None
