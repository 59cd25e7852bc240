"""The index file: which ref keeps which node, in a SQLite database.

Nothing here is synced to the disk, and nothing in it is the only copy. A file that a crash,
another program or another version has changed is noticed by SQLite, by the version, or by the
seal: a sum over all rows that every change updates in the same transaction. It is then removed.
(WAL with synchronous=NORMAL would survive a crash without the seal and make a miss eight times as
fast at 20,000 rows, but overwritten bytes would go unnoticed, and a node be taken for missing.)
Format: FORMAT.md, "Local files".
"""

import os
import sqlite3
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from uwf_git.model.crockford import ALPHABET, encode_u64
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.oid import Oid, is_oid

_OURS = (1970759288, 1)
"""application_id of the file, which spells uwfx, and user_version, that of the tables."""

_BUSY_S = 2.0
_HASH_LENGTH = 13

# A node's name has 64 bits; as an integer key it takes half the space of a text. SQLite's integers
# are signed: the name less 2**63 sorts the same.
_HALF = 1 << 63
_SYMBOLS = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")

# The total of the seal is the sum over all rows: a node's name modulo a prime near 2**31, so that
# a thousand million rows do not overflow, and the mark of a source.
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS source (
    id INTEGER PRIMARY KEY, ref TEXT NOT NULL UNIQUE, tip TEXT NOT NULL, mark INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS node (name INTEGER PRIMARY KEY, source INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS seal (total INTEGER NOT NULL, packed TEXT NOT NULL);
INSERT INTO seal SELECT 0, '' WHERE NOT EXISTS (SELECT 1 FROM seal);
CREATE TRIGGER IF NOT EXISTS node_added AFTER INSERT ON node BEGIN
    UPDATE seal SET total = total + abs(new.name % 2147483629) + 1;
END;
CREATE TRIGGER IF NOT EXISTS node_dropped AFTER DELETE ON node BEGIN
    UPDATE seal SET total = total - abs(old.name % 2147483629) - 1;
END;
CREATE TRIGGER IF NOT EXISTS source_added AFTER INSERT ON source BEGIN
    UPDATE seal SET total = total + new.mark;
END;
CREATE TRIGGER IF NOT EXISTS source_moved AFTER UPDATE ON source BEGIN
    UPDATE seal SET total = total + new.mark - old.mark;
END;
PRAGMA application_id = 1970759288;
PRAGMA user_version = 1;
COMMIT;
"""
_TOTAL = """
SELECT (SELECT ifnull(sum(abs(name % 2147483629) + 1), 0) FROM node)
    + (SELECT ifnull(sum(mark), 0) FROM source)
"""

# Errors of the machine or the moment, not of the file (sqlite.org/rescode.html).
_PASSING = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


class IndexUnusable(Exception):
    """The index cannot be read or written now; all refs have to be searched."""


class _Damaged(IndexUnusable):
    """The file was damaged or not an index, and has been removed."""


class Scan(NamedTuple):
    """The nodes that a scan found in a ref."""

    ref: str
    tip: Oid | None
    """The commit that was scanned; None if a part of it could not be read."""

    names: list[NodeHash]
    """The nodes of the ref that may not be in the index yet."""


class IndexFile:
    """The index, opened."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as error:
            raise IndexUnusable(str(error)) from error
        with self._guarded():
            self._check_file()
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._execute("PRAGMA synchronous = OFF")
            if self._versions() == (0, 0):
                # Harmless if another process does the same at the same time.
                self._connection.executescript(_SCHEMA)
            if self._versions() != _OURS:
                raise sqlite3.DatabaseError("an index of another version, or of another program")

    def __del__(self) -> None:
        self._close()

    def find(self, name: NodeHash) -> str | None:
        """Return a ref that kept the node *name* when it was scanned, or None.

        The caller checks that it is a ref: the file may be damaged.
        """
        query = "SELECT ref FROM node LEFT JOIN source ON source = id WHERE name = ?"
        row = self._one(query, _key(name))
        return None if row is None else str(row[0])

    def list_names(self, prefix: str) -> list[NodeHash]:
        """List the nodes in the index that begin with *prefix*, in order."""
        missing = _HASH_LENGTH - len(prefix)
        ends = (_key(prefix + "0" * missing), _key(prefix + "Z" * missing))
        with self._guarded():
            rows = self._execute("SELECT name FROM node WHERE name BETWEEN ? AND ?", *ends)
            return [NodeHash(encode_u64(name + _HALF)) for (name,) in rows]

    def find_tip(self, ref: str) -> Oid | None:
        """Return the commit at which *ref* was scanned; None if it was not, or not in full."""
        row = self._one("SELECT tip FROM source WHERE ref = ?", ref)
        tip = "" if row is None else str(row[0])
        return Oid(tip) if is_oid(tip) else None

    def read_stamp(self) -> str:
        """Return the stamp of packed-refs when all refs in it had been scanned."""
        row = self._one("SELECT packed FROM seal")
        return "" if row is None else str(row[0])

    def is_whole(self) -> bool:
        """Check that no row was lost or changed, so that a miss can be believed."""
        with self._guarded(), self._transaction("DEFERRED"):
            checks = self._execute("PRAGMA quick_check(1)").fetchall()
            seals = self._execute("SELECT total FROM seal").fetchall()
            return checks == [("ok",)] and seals == self._execute(_TOTAL).fetchall()

    def add(self, scans: Iterable[Scan], *, stamp: str | None = None) -> None:
        """Add the nodes of *scans*; with *stamp* all refs of that packed-refs are now scanned.

        Raises:
            IndexUnusable: the file cannot be written, or another process is writing.
        """
        with self._guarded(), self._transaction("IMMEDIATE"):
            for scan in scans:
                self._put_source(scan.ref, scan.tip or "")
                (number,) = self._one("SELECT id FROM source WHERE ref = ?", scan.ref) or (0,)
                # The last ref wins, so that a node that another process is dropping is kept.
                self._connection.executemany(
                    "INSERT INTO node VALUES (?, ?)"
                    " ON CONFLICT (name) DO UPDATE SET source = excluded.source",
                    [(_key(name), number) for name in scan.names],
                )
            if stamp is not None:
                self._execute("UPDATE seal SET packed = ?", stamp)

    def point(self, name: NodeHash, ref: str) -> None:
        """Record that *ref* keeps the node *name*, which another ref kept before."""
        with self._guarded():
            self._execute(
                "UPDATE node SET source = (SELECT id FROM source WHERE ref = ?)"
                " WHERE name = ? AND EXISTS (SELECT 1 FROM source WHERE ref = ?)",
                *(ref, _key(name), ref),
            )

    def drop(self, name: NodeHash, ref: str, *, refs: set[str]) -> None:
        """Remove the node *name* if *ref* keeps it; *refs* are all refs that exist now.

        Refs that are gone are marked as not scanned: if one comes back, it may have nodes that
        were dropped meanwhile.
        """
        with self._guarded(), self._transaction("IMMEDIATE"):
            self._execute(
                "DELETE FROM node WHERE name = ?"
                " AND source IN (SELECT id FROM source WHERE ref = ?)",
                *(_key(name), ref),
            )
            rows = self._execute("SELECT ref FROM source WHERE tip != ''").fetchall()
            for (known,) in rows:
                if known not in refs:
                    self._put_source(known, "")

    def remove(self) -> None:
        """Remove the file; other processes that have it open lose their changes."""
        self._close()
        for path in (self._path, self._path + "-journal"):
            with suppress(OSError):
                os.unlink(path)

    def _put_source(self, ref: str, tip: str) -> None:
        self._execute(
            "INSERT INTO source (ref, tip, mark) VALUES (?, ?, ?)"
            " ON CONFLICT (ref) DO UPDATE SET tip = excluded.tip, mark = excluded.mark",
            *(ref, tip, zlib.crc32(f"{ref} {tip}".encode())),
        )

    def _check_file(self) -> None:
        """Refuse a symbolic link, which SQLite would follow."""
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(self._path).st_mode):
                raise sqlite3.DatabaseError("not a regular file")

    def _versions(self) -> tuple[Any, Any]:
        (application,) = self._one("PRAGMA application_id") or (None,)
        (version,) = self._one("PRAGMA user_version") or (None,)
        return application, version

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with self._guarded():
            row: tuple[Any, ...] | None = self._execute(query, *values).fetchone()
            return row

    def _execute(self, query: str, *values: object) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        self._execute(f"BEGIN {kind}")
        try:
            yield
            # Fails while another process reads, and then leaves the transaction open.
            self._execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._execute("ROLLBACK")
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn errors of SQLite into `IndexUnusable`; remove a damaged file."""
        try:
            yield
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
            if code & 0xFF in _PASSING:
                raise IndexUnusable(str(error)) from error
            self.remove()
            raise _Damaged(str(error)) from error

    def _close(self) -> None:
        with suppress(AttributeError, sqlite3.Error):
            self._connection.close()


def open_index(path: str) -> IndexFile:
    """Open the index at *path*; create it if it is missing or damaged.

    Raises:
        IndexUnusable: the file cannot be read or created.
    """
    try:
        return IndexFile(path)
    except _Damaged:
        return IndexFile(path)


def _key(name: str) -> int:
    return int(name.translate(_SYMBOLS), 32) - _HALF
