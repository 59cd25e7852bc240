"""Keeping the index up with the refs; test_lookup.py tests that lookups by it are right."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from commands.crowd import at_once
from store.small_packs import damage, loose_file, loosen
from store.story import THREAD, Story, signed

from uwf_git.model.builtin import TEXT
from uwf_git.model.names import NodeHash, Oid, ThreadId, encode_u64
from uwf_git.model.node import Node, build_node
from uwf_git.store.index import (
    NO_ADVICE,
    Advice,
    IndexFile,
    IndexUnusable,
    NodeIndex,
    Scan,
    open_index,
)
from uwf_git.store.lookup import NODES_REF, NodeLookup, put_nodes
from uwf_git.store.refs import BadPackedRefs
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import ACTIVE

NOWHERE = build_node(TEXT, "nobody has this", timestamp=0).hash
NOTES = [build_node(TEXT, f"note {number}", timestamp=0) for number in range(20)]


def path_of(store: Store) -> Path:
    return Path(store.path, "uwf", "nodes.sqlite")


def run(path: Path, *statements: str) -> None:
    """Change the file as another program may."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


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


def test_what_could_not_be_read_is_named_and_looked_at_again(store: Store, story: Story) -> None:
    put(store, NOTES[0])
    loosen(store)
    tree = loose_file(store, story.snapshot.nodes)
    content = tree.read_bytes()
    damage(tree, b"")
    damaged = open_store(store.path)
    assert NodeIndex(damaged).advise(NOWHERE) == Advice((ACTIVE + THREAD,), is_all=True)
    assert NodeIndex(damaged).advise(NOTES[0].hash).refs == (NODES_REF,)
    tree.write_bytes(content)
    whole = open_store(store.path)
    assert NodeIndex(whole).advise(NOWHERE) == Advice((), is_all=True)
    assert likely(whole, story.snapshot.get_head_node())[0] == ACTIVE + THREAD


def test_names_are_listed_with_all_that_there_are_now(store: Store, story: Story) -> None:
    put(store, *NOTES[:10])
    assert NodeIndex(store).list_names(NOTES[0].hash) == ([NOTES[0].hash], ())
    put(store, *NOTES[10:])
    for node in (NOTES[15], story.snapshot.get_head_node()):
        found = NodeIndex(store).list_names(node.hash[:6])
        assert found is not None
        assert node.hash in found.names


def test_a_lost_row_is_noticed_before_a_node_is_said_to_be_nowhere(store: Store) -> None:
    put(store, *NOTES)
    assert NodeIndex(store).advise(NOWHERE).is_all
    run(path_of(store), "DROP TRIGGER node_dropped", "DELETE FROM node")
    assert likely(store, NOTES[0]) == (NODES_REF,)


def test_a_ref_that_the_index_made_up_is_not_asked(store: Store) -> None:
    put(store, *NOTES)
    assert NodeIndex(store).advise(NOWHERE).is_all
    run(path_of(store), "UPDATE source SET ref = 'refs/threads/../../config'")
    assert NodeIndex(store).advise(NOTES[0].hash) == Advice((), is_all=False)
    run(path_of(store), "DELETE FROM source")
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
    heads = [story.snapshot.get_head_node().hash for story in tell(store, clock, "0123456789")]

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


# The index file: written entries are found, and damage is noticed.

ONE, TWO = "refs/threads/01J00000000000000000000001", "refs/archive/01J00000000000000000000002"
TIP, LATER = Oid("1" * 40), Oid("2" * 40)
NAMES = [NodeHash(encode_u64(number << 54 | number)) for number in range(1000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "uwf" / "nodes.sqlite"


@pytest.fixture
def file(path: Path) -> IndexFile:
    return open_index(str(path))


def test_a_node_that_another_process_found_elsewhere_is_not_dropped(file: IndexFile) -> None:
    file.add([Scan(ONE, TIP, NAMES[:1]), Scan(TWO, TIP, NAMES[:1])])
    file.drop(NAMES[0], ONE, refs={TWO})
    assert file.find(NAMES[0]) == TWO


def put_another_in_its_place(path: Path) -> None:
    path.unlink()
    run(path, "CREATE TABLE another (x)", "PRAGMA user_version = 9")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b"no database " * 1000),
        lambda path: path.write_bytes(path.read_bytes()[:50]),
        lambda path: path.write_bytes(b"\0" * 8192),
        lambda path: run(path, "PRAGMA user_version = 2"),
        lambda path: run(path, "PRAGMA application_id = 1"),
        put_another_in_its_place,
    ],
    ids=["text", "cut", "zeros", "newer", "foreign", "other tables"],
)
def test_what_is_no_index_of_ours_is_replaced(
    file: IndexFile, path: Path, spoil: Callable[[Path], object]
) -> None:
    file.add([Scan(ONE, TIP, NAMES)])
    spoil(path)
    fresh = open_index(str(path))
    assert fresh.find(NAMES[0]) is None
    fresh.add([Scan(TWO, TIP, NAMES)])
    assert open_index(str(path)).find(NAMES[0]) == TWO


def test_whatever_bytes_are_overwritten_no_node_is_lost_unnoticed(
    file: IndexFile, path: Path
) -> None:
    kept = {name: f"{ONE}{number % 20}" for number, name in enumerate(NAMES[:400])}
    scans = [Scan(ref, TIP, [name for name in kept if kept[name] == ref]) for ref in kept.values()]
    file.add(scans)
    whole = path.read_bytes()
    noticed = 0
    for seed in range(150):
        dice = random.Random(seed)
        at, length = dice.randrange(len(whole)), dice.choice([1, 4, 100, 5000])
        path.write_bytes(whole[:at] + dice.randbytes(length) + whole[at + length :])
        try:
            spoiled = open_index(str(path))
            lost = [
                name
                for name, ref in kept.items()
                if spoiled.find(name) is None and spoiled.find_tip(ref) == TIP
            ]
            is_whole = spoiled.is_whole()
            spoiled.add(scans[:1])
        except IndexUnusable:
            noticed += 1
            continue
        # Such a node would be taken for one that no ref keeps.
        assert not (lost and is_whole)
        noticed += not is_whole
    assert noticed > 20


def test_no_index_is_made_where_there_is_no_room_for_one(tmp_path: Path) -> None:
    (tmp_path / "uwf").write_text("a file")
    with pytest.raises(IndexUnusable):
        open_index(str(tmp_path / "uwf" / "nodes.sqlite"))
    (tmp_path / "nodes.sqlite").mkdir()
    with pytest.raises(IndexUnusable):
        open_index(str(tmp_path / "nodes.sqlite"))


def test_an_index_that_another_process_has_locked_is_unusable_and_stays(
    file: IndexFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwf_git.store.index._BUSY_S", 0.01)
    file.add([Scan(ONE, TIP, NAMES)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(IndexUnusable):
            open_index(str(path)).find(NAMES[0])
        connection.execute("ROLLBACK")
    assert open_index(str(path)).find(NAMES[0]) == ONE


def test_an_index_that_cannot_be_written_can_be_read(
    file: IndexFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwf_git.store.index._BUSY_S", 0.01)
    file.add([Scan(ONE, TIP, NAMES)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM node").fetchone()
        other = open_index(str(path))
        with pytest.raises(IndexUnusable):
            other.add([Scan(TWO, TIP, NAMES)])
        assert other.find(NAMES[0]) == ONE
        assert other.is_whole()
    assert open_index(str(path)).find(NAMES[0]) == ONE


@pytest.mark.parametrize("kind", ["another database", "nothing", "a fifo"])
def test_what_is_no_file_of_its_own_is_replaced_and_not_followed(
    path: Path, tmp_path: Path, kind: str
) -> None:
    other = tmp_path / "other.sqlite"
    path.parent.mkdir()
    if kind == "a fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(other)
    if kind == "another database":
        run(other, "CREATE TABLE precious (x)")
        before = other.read_bytes()
    open_index(str(path)).add([Scan(ONE, TIP, NAMES[:1])])
    assert path.is_file()
    assert not path.is_symlink()
    assert open_index(str(path)).find(NAMES[0]) == ONE
    if kind == "another database":
        assert other.read_bytes() == before
    else:
        assert not other.exists()
