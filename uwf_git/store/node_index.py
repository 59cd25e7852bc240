"""The node index: where to look for a node, without asking every ref of the store.

Owns: keeping the index up with the refs, and when it can be believed.
Knows nothing of: SQLite (index_file.py), what is done with a node.
Always true: what it says is where to look, never what is there: nodes are read from git and
checked by their names. It only says that a node is nowhere after every ref was compared with
what it has looked at. Nothing is written where a thread is stepped; it catches up when it does
not know a node. Whatever is wrong with its file is no error: then it says nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeVar

from uwf_git.debug_log import debug
from uwf_git.errors import StoreDamaged
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.commit import CommitView, find_entry, read_commit
from uwf_git.store.index_file import IndexFile, IndexUnusable, Scan, open_index
from uwf_git.store.keeper import keeps_versions
from uwf_git.store.keeping_refs import (
    follow,
    is_keeping,
    list_keeping_refs,
    list_loose,
    list_packed,
    stamp_packed,
)
from uwf_git.store.node_files import NodeFolders
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import NODES
from uwf_git.store.store import Store

_FILE = "nodes.sqlite"

# How many refs are looked at between two writes: a tenth of a second or so.
_BATCH = 500


class Advice(NamedTuple):
    """Where to look for a node."""

    refs: tuple[str, ...]
    """Ask these first."""

    is_all: bool
    """Whether no other ref of the store can have it."""


class Names(NamedTuple):
    """The nodes that begin with something."""

    names: list[NodeHash]
    """Some may be gone."""

    refs: tuple[str, ...]
    """In these there may be more, which could not be read."""


NO_IDEA = Advice((), is_all=False)

_Answer = TypeVar("_Answer")


class NodeIndex:
    """The index of a store, as one command uses it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = store.local_path(_FILE)
        self._file: IndexFile | None = None
        if store.is_kept:
            with suppress(IndexUnusable):
                self._file = open_index(self._path)
        self._folders = NodeFolders(store.objects)
        # A folder whose nodes are in the index: what the next one shares with it is passed over.
        self._indexed: bytes | None = None
        self._unread: set[str] = set()
        self._is_checked = False
        self._is_complete = False

    def advise(self, name: NodeHash) -> Advice:
        """Say where to look for the node *name*.

        Raises:
            BadPackedRefs: nobody can tell which refs there are.
        """
        return self._ask(lambda file: self._advise(file, name)) or NO_IDEA

    def list_names(self, prefix: str) -> Names | None:
        """List the nodes that begin with *prefix*; None if only a walk can tell.

        Raises:
            BadPackedRefs: nobody can tell which refs there are.
        """
        return self._ask(lambda file: self._list_names(file, prefix))

    def learn(self, name: NodeHash, ref: str) -> None:
        """Take note that *ref* keeps the node *name*, which was not where it had been."""
        self._ask(lambda file: file.point(name, ref))

    def forget(self, name: NodeHash) -> None:
        """Take note that no ref keeps the node *name* any more."""
        self._ask(lambda file: self._forget(file, name))

    def _ask(self, question: Callable[[IndexFile], _Answer]) -> _Answer | None:
        """Give the answer of the file; None if it has none, and from then on."""
        if self._file is None:
            return None
        try:
            return question(self._file)
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
        # Else it is none: the file cannot be believed, and a walk will put it right.
        refs = follow(ref) if is_keeping(ref) else ()
        return Advice(refs, is_all=False)

    def _list_names(self, file: IndexFile, prefix: str) -> Names:
        names = self._catch_up(file).list_names(prefix)
        return Names(names, tuple(sorted(self._unread)))

    def _forget(self, file: IndexFile, name: NodeHash) -> None:
        # First all that there is now: what is looked at after this is looked at as it is then.
        file = self._catch_up(file)
        ref = file.find(name)
        if ref is not None:
            file.drop(name, ref, refs=set(list_keeping_refs(self._store)))

    def _catch_up(self, file: IndexFile, *, until: NodeHash | None = None) -> IndexFile:
        """Look at all refs that are elsewhere than when they were looked at, the newest first.

        No further than *until* is found: in a large store all of it may take half a minute.

        Returns:
            The file; another one if the first had to be removed.
        """
        if self._is_complete:
            return file
        if not self._is_checked and not file.is_whole():
            file.remove()
            file = self._file = open_index(self._path)
        self._is_checked = True
        loose = dict(list_loose(self._store))
        if self._look_at(file, loose.items(), until):
            return file
        stamp = stamp_packed(self._store)
        if stamp != file.read_stamp():
            packed = (each for each in list_packed(self._store) if each[0] not in loose)
            if self._look_at(file, packed, until):
                return file
            if loose.keys() >= self._unread:
                file.add([], stamp=stamp)
        self._is_complete = True
        return file

    def _look_at(
        self, file: IndexFile, refs: Iterable[tuple[str, Oid]], until: NodeHash | None
    ) -> bool:
        """Bring the index up with *refs*; stop and say True as soon as *until* is in it."""
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
            debug("KHT3BPZ9", "index looks at a ref", ref=ref, nodes=len(scan.names), tip=scan.tip)
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
        """Add to *names* what is new in *commit*; say whether all of it could be read."""
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
    """Tell whether *ref* is UTF-8; only others than us make any that is not."""
    try:
        ref.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list_commits(store: Store, ref: str, tip: Oid, known: Oid | None) -> Iterator[CommitView]:
    """Give the commits of *ref* whose nodes are not in its tip: the versions of a workflow."""
    oid: Oid | None = tip
    while oid is not None and oid != known:
        commit = read_commit(store.objects, oid)
        yield commit
        oid = next(iter(commit.parents), None) if keeps_versions(ref) else None
