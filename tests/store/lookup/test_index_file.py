"""The index file: written entries are found, and damage is noticed."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from uwf_git.model.names import NodeHash, Oid, encode_u64
from uwf_git.store.index import IndexFile, IndexUnusable, Scan, open_index

ONE, TWO = "refs/threads/01J00000000000000000000001", "refs/archive/01J00000000000000000000002"
TIP, LATER = Oid("1" * 40), Oid("2" * 40)
NAMES = [NodeHash(encode_u64(number << 54 | number)) for number in range(1000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "uwf" / "nodes.sqlite"


@pytest.fixture
def file(path: Path) -> IndexFile:
    return open_index(str(path))


def run(path: Path, *statements: str) -> None:
    """Change the file as another program may."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


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
