"""The node index: in which refs to search for a node, in a SQLite database."""

import os
import sqlite3
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from uwf_git.debug_log import debug
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ALPHABET, NodeHash, Oid, encode_u64, is_oid
from uwf_git.store.lookup import (
    NodeFolders,
    follow,
    is_root_ref,
    list_loose_roots,
    list_packed_roots,
    list_root_refs,
    nodes_at,
    walk_root,
)
from uwf_git.store.nodes import NODES
from uwf_git.store.objects.commit import CommitView, find_entry
from uwf_git.store.refs import stamp_packed
from uwf_git.store.store import Store

# The index file: which ref keeps which node, in a SQLite database.
#
# Nothing here is synced to the disk, and nothing in it is the only copy. A file that a crash,
# another program or another version has changed is noticed by SQLite, by the version, or by the
# seal: a sum over all rows that every change updates in the same transaction. It is then removed.
# (WAL with synchronous=NORMAL would survive a crash without the seal and make a miss eight times
# as fast at 20,000 rows, but overwritten bytes would go unnoticed, and a node be taken for
# missing.) Format: FORMAT.md, "Local files".

_OURS = (1970759288, 1)
"""application_id of the file, which spells uwfx, and user_version, the version of the tables."""

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

_VERSIONS = "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"

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

    is_damaged = False
    """The file was damaged or not an index, and has been removed."""


class Scan(NamedTuple):
    ref: str
    tip: Oid | None
    """The commit that was scanned; None if a part of it could not be read."""

    names: list[NodeHash]
    """The nodes of the ref that may not be in the index yet."""


class IndexFile:
    def __init__(self, path: str) -> None:
        self._path = path
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        except OSError as error:
            raise IndexUnusable(str(error)) from error
        with self._guarded():
            with suppress(FileNotFoundError):
                # SQLite would follow a symbolic link.
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    raise sqlite3.DatabaseError("not a regular file")
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._execute("PRAGMA synchronous = OFF")
            if self._one(_VERSIONS) == (0, 0):
                # Harmless if another process does the same at the same time.
                self._connection.executescript(_SCHEMA)
            if self._one(_VERSIONS) != _OURS:
                raise sqlite3.DatabaseError("an index of another version, or of another program")

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
        """Return the commit at which *ref* was scanned in full; None without such a scan."""
        row = self._one("SELECT tip FROM source WHERE ref = ?", ref)
        tip = "" if row is None else str(row[0])
        return Oid(tip) if is_oid(tip) else None

    def read_stamp(self) -> str:
        """Return the stamp of packed-refs when all refs in it had been scanned."""
        row = self._one("SELECT packed FROM seal")
        return "" if row is None else str(row[0])

    def is_whole(self) -> bool:
        with self._guarded(), self._transaction("DEFERRED"):
            checks = self._execute("PRAGMA quick_check(1)").fetchall()
            seals = self._execute("SELECT total FROM seal").fetchall()
            return checks == [("ok",)] and seals == self._execute(_TOTAL).fetchall()

    def add(self, scans: Iterable[Scan], *, stamp: str | None = None) -> None:
        """Add the nodes of *scans*; with *stamp* all refs of that packed-refs are now scanned."""
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
            for (known,) in self._execute("SELECT ref FROM source WHERE tip != ''").fetchall():
                if known not in refs:
                    self._put_source(known, "")

    def remove(self) -> None:
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
            unusable = IndexUnusable(str(error))
            if code & 0xFF not in _PASSING:
                self.remove()
                unusable.is_damaged = True
            raise unusable from error

    def _close(self) -> None:
        with suppress(AttributeError, sqlite3.Error):
            self._connection.close()

    __del__ = _close


def open_index(path: str) -> IndexFile:
    try:
        return IndexFile(path)
    except IndexUnusable as unusable:
        if not unusable.is_damaged:
            raise
        return IndexFile(path)


def _key(name: str) -> int:
    return int(name.translate(_SYMBOLS), 32) - _HALF


# The node index, kept up with the refs: in which refs to search for a node.
#
# A miss is believed only after every ref was compared with the commit at which it was indexed.
# Stepping a thread writes nothing here; the index catches up when it does not know a node. A file
# that is missing, damaged or locked is no error: then the index gives no advice.

_FILE = "nodes.sqlite"

# How many refs are scanned between two writes: about a tenth of a second.
_BATCH = 500


class Advice(NamedTuple):
    refs: tuple[str, ...]
    """Search these first."""

    is_all: bool
    """Whether no other ref of the store can have the node."""


class IndexedNames(NamedTuple):
    names: list[NodeHash]
    """Some may have been removed from the store."""

    refs: tuple[str, ...]
    """Refs that could not be indexed in full, and may have more."""


NO_ADVICE = Advice((), is_all=False)

_T = TypeVar("_T")


class NodeIndex:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = store.local_path(_FILE)
        self._file: IndexFile | None = None
        with suppress(IndexUnusable):
            self._file = open_index(self._path)
        self._folders = NodeFolders(store.objects)
        # A folder whose nodes are in the index; scanning skips what the next folder shares with it.
        self._indexed: bytes | None = None
        self._unread: set[str] = set()
        self._is_checked = False
        self._is_complete = False

    def advise(self, name: NodeHash) -> Advice:
        return self._query(lambda file: self._advise(file, name)) or NO_ADVICE

    def list_names(self, prefix: str) -> IndexedNames | None:
        return self._query(lambda file: self._list_names(file, prefix))

    def learn(self, name: NodeHash, ref: str) -> None:
        """Record that *ref* keeps the node *name*, which another ref kept before."""
        self._query(lambda file: file.point(name, ref))

    def forget(self, name: NodeHash) -> None:
        """Record that no ref keeps the node *name* any more."""
        self._query(lambda file: self._forget(file, name))

    def _query(self, query: Callable[[IndexFile], _T]) -> _T | None:
        """Run *query* on the file; return None if the file is unusable, now and ever after."""
        if self._file is None:
            return None
        try:
            return query(self._file)
        except IndexUnusable:
            self._file = None
            return None

    def _advise(self, file: IndexFile, name: NodeHash) -> Advice:
        ref = file.find(name)
        if ref is None:
            file = self._catch_up(file, until=name)
            ref = file.find(name)
        if ref is None:
            return Advice(tuple(sorted(self._unread)), is_all=self._is_complete)
        # Another name means a damaged file; the search of all refs will correct it.
        return Advice(follow(ref) if is_root_ref(ref) else (), is_all=False)

    def _list_names(self, file: IndexFile, prefix: str) -> IndexedNames:
        names = self._catch_up(file).list_names(prefix)
        return IndexedNames(names, tuple(sorted(self._unread)))

    def _forget(self, file: IndexFile, name: NodeHash) -> None:
        # First catch up: refs that change later are scanned again anyway.
        file = self._catch_up(file)
        ref = file.find(name)
        if ref is not None:
            file.drop(name, ref, refs=set(list_root_refs(self._store)))

    def _catch_up(self, file: IndexFile, *, until: NodeHash | None = None) -> IndexFile:
        """Scan all refs that moved since they were scanned, the newest first; return the file.

        Stop when the node *until* is found: a full scan of a large store takes half a minute.
        A damaged file is replaced by a new one.
        """
        if self._is_complete:
            return file
        if not self._is_checked and not file.is_whole():
            file.remove()
            file = self._file = open_index(self._path)
        self._is_checked = True
        loose = dict(list_loose_roots(self._store))
        if self._scan_refs(file, loose.items(), until):
            return file
        stamp = stamp_packed(self._store.path)
        if stamp != file.read_stamp():
            packed = (each for each in list_packed_roots(self._store) if each[0] not in loose)
            if self._scan_refs(file, packed, until):
                return file
            if loose.keys() >= self._unread:
                file.add([], stamp=stamp)
        self._is_complete = True
        return file

    def _scan_refs(
        self, file: IndexFile, refs: Iterable[tuple[str, Oid]], until: NodeHash | None
    ) -> bool:
        """Index *refs* where they moved; stop and return True as soon as *until* is found."""
        scans: list[Scan] = []
        for ref, tip in refs:
            # SQLite takes no lone surrogates.
            if ref != ref.encode(errors="replace").decode():
                self._unread.add(ref)
                continue
            known = file.find_tip(ref)
            if known == tip:
                continue
            scan = self._scan(ref, tip, known)
            scans.append(scan)
            if scan.tip is None:
                self._unread.add(ref)
            debug("KHT3BPZ9", "index scans a ref", ref=ref, nodes=len(scan.names), tip=scan.tip)
            if until in scan.names:
                break
            if len(scans) == _BATCH:
                file.add(scans)
                scans.clear()
        if scans:
            file.add(scans)
        return bool(scans) and until in scans[-1].names

    def _scan(self, ref: str, tip: Oid, known: Oid | None) -> Scan:
        names: list[NodeHash] = []
        is_whole = True
        if known is not None:
            self._indexed = nodes_at(self._store.objects, known) or self._indexed
        try:
            for commit in walk_root(self._store, ref, tip, until=known):
                is_whole &= self._scan_commit(commit, names)
        except StoreDamaged:
            is_whole = False
        return Scan(ref, tip if is_whole else None, names)

    def _scan_commit(self, commit: CommitView, names: list[NodeHash]) -> bool:
        """Add the new nodes of *commit* to *names*; return whether all of it could be read."""
        nodes = find_entry(self._store.objects, commit, NODES)
        if nodes is None:
            return True
        raw = bytes.fromhex(nodes.decode())
        is_whole = True
        for change in self._folders.compare(self._indexed, raw, keep_old=True):
            is_whole &= change.kind != "damaged"
            if change.name is not None and change.kind != "lost":
                names.append(change.name)
        if is_whole:
            self._indexed = raw
        return is_whole
