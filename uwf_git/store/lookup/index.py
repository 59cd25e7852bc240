"""The node index, kept up with the refs: in which refs to search for a node.

A miss is believed only after every ref was compared with the commit at which it was indexed.
Stepping a thread writes nothing here; the index catches up when it does not know a node. A file
that is missing, damaged or locked is no error: then the index gives no advice.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeVar

from uwf_git.debug_log import debug
from uwf_git.errors import StoreDamaged
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.lookup.index_file import IndexFile, IndexUnusable, Scan, open_index
from uwf_git.store.lookup.root_refs import (
    follow,
    is_root_ref,
    list_loose_roots,
    list_packed_roots,
    list_root_refs,
)
from uwf_git.store.lookup.roots import keeps_versions
from uwf_git.store.nodes.folders import NodeFolders
from uwf_git.store.nodes.tree import NODES
from uwf_git.store.objects.commit import CommitView, find_entry, read_commit
from uwf_git.store.oid import Oid
from uwf_git.store.refs.packed_refs import stamp_packed
from uwf_git.store.store import Store

_FILE = "nodes.sqlite"

# How many refs are scanned between two writes: about a tenth of a second.
_BATCH = 500


class Advice(NamedTuple):
    """In which refs to search for a node."""

    refs: tuple[str, ...]
    """Search these first."""

    is_all: bool
    """Whether no other ref of the store can have the node."""


class IndexedNames(NamedTuple):
    """The names in the index that begin with a prefix."""

    names: list[NodeHash]
    """Some may have been removed from the store."""

    refs: tuple[str, ...]
    """Refs that could not be indexed in full, and may have more."""


NO_ADVICE = Advice((), is_all=False)

_T = TypeVar("_T")


class NodeIndex:
    """The index of a store, as one command uses it."""

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
        """Return the refs in which to search for the node *name*.

        Raises:
            BadPackedRefs: the refs of the store cannot be listed.
        """
        return self._query(lambda file: self._advise(file, name)) or NO_ADVICE

    def list_names(self, prefix: str) -> IndexedNames | None:
        """List the nodes that begin with *prefix*; None if there is no usable index.

        Raises:
            BadPackedRefs: the refs of the store cannot be listed.
        """
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
        refs = follow(ref) if is_root_ref(ref) else ()
        return Advice(refs, is_all=False)

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
            if not _is_text(ref):
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
            self._indexed = self._find_nodes(known) or self._indexed
        try:
            for commit in _list_commits(self._store, ref, tip, known):
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

    def _find_nodes(self, oid: Oid) -> bytes | None:
        try:
            commit = read_commit(self._store.objects, oid)
            nodes = find_entry(self._store.objects, commit, NODES)
        except StoreDamaged:
            return None
        return None if nodes is None else bytes.fromhex(nodes.decode())


def _is_text(ref: str) -> bool:
    """Check whether *ref* is UTF-8; other programs may create refs that are not."""
    try:
        ref.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list_commits(store: Store, ref: str, tip: Oid, known: Oid | None) -> Iterator[CommitView]:
    """Yield the tip of *ref*; of a workflow also its older versions, back to *known*."""
    oid: Oid | None = tip
    while oid is not None and oid != known:
        commit = read_commit(store.objects, oid)
        yield commit
        oid = next(iter(commit.parents), None) if keeps_versions(ref) else None
