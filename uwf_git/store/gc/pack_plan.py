"""Plan a pack: which objects go into it, and which are stored as a delta against which.

Only objects that refs reach are planned, so what a running step has written stays where it is. A
base comes before its deltas, and no delta chain is longer than git's default.
Source: git-pack-objects(1), ``--depth``.
"""

import re
from collections.abc import Collection, Container, Iterable
from typing import NamedTuple

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.store.gc.delta import make_delta
from uwf_git.store.objects.objects import ObjectStore

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4

_DEEPEST = 50
_HELD_BYTES = 16 * 1024 * 1024
_OID_BYTES = 20
_LARGEST_DELTIFIED = 64 * 1024
_LINES_TO_TYPE = 2
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_FOLDER_MODES = {b"40000", b"040000"}
_SUBMODULE_MODE = b"160000"
_PARENT = re.compile(rb"parent ([0-9a-f]{40})\n")
_TARGET = re.compile(rb"object ([0-9a-f]{40})\ntype (commit|tree|blob|tag)\n")
_KINDS = {b"commit": COMMIT, b"tree": TREE, b"blob": BLOB, b"tag": TAG}


class Planned(NamedTuple):
    """One object of a pack."""

    kind: int
    base: ObjectID | None = None
    delta: bytes | None = None
    """The object as a delta against *base*; None if it is stored whole."""


class _Waiting(NamedTuple):
    oid: ObjectID
    kind: int
    base: ObjectID | None
    """A newer version of the same file or tree, if one is known."""

    is_node: bool = False
    """It may be a node; nodes of one type are similar."""


_NOTHING: frozenset[ObjectID] = frozenset()


def plan_pack(
    objects: ObjectStore,
    todo: Container[ObjectID],
    tips: Iterable[ObjectID],
    *,
    through: Container[ObjectID] = _NOTHING,
) -> dict[ObjectID, Planned]:
    """Plan a pack of all objects *todo* that *tips* reach, in the order in which to write them.

    The walk goes on *through* some others, and ends at all else: what that reaches is packed too.
    An unreadable object is left out.
    """
    plan = _Plan(objects, todo, through)
    for tip in tips:
        plan.walk(tip)
    return plan.entries


def list_reachable(objects: ObjectStore, tips: Iterable[ObjectID]) -> set[ObjectID]:
    """List every object that *tips* reach.

    Raises:
        KeyError, DamagedObject: one is missing or damaged, so what it reaches is unknown.
    """
    needed: set[ObjectID] = set()
    waiting = [_Waiting(tip, objects.get_raw(tip)[0], None) for tip in tips]
    while waiting:
        each = waiting.pop()
        if each.oid not in needed:
            needed.add(each.oid)
            if each.kind != BLOB:
                pieces = _split(each.kind, objects.get_raw(each.oid)[1])
                waiting += _needed_by(each, pieces, [])
    return needed


class _Plan:
    def __init__(
        self, objects: ObjectStore, todo: Container[ObjectID], through: Container[ObjectID]
    ) -> None:
        self.entries: dict[ObjectID, Planned] = {}
        self._objects = objects
        self._todo, self._through = todo, through
        self._passed: set[ObjectID] = set()
        self._depths: dict[ObjectID, int] = {}
        self._last_like: dict[bytes, ObjectID] = {}
        self._contents: dict[ObjectID, bytes] = {}
        self._contents_bytes = 0

    def walk(self, tip: ObjectID) -> None:
        if tip not in self._todo and tip not in self._through:
            return
        try:
            kind, _content = self._objects.get_raw(tip)
        except (KeyError, StoreDamaged):
            return
        waiting = [_Waiting(tip, kind, None)]
        while waiting:
            each = waiting.pop()
            if each.oid in self.entries or each.oid in self._passed:
                continue
            if each.oid in self._todo:
                waiting += self._plan(each)
            elif each.oid in self._through:
                self._passed.add(each.oid)
                waiting += self._look_behind(each)

    def _plan(self, each: _Waiting) -> Collection[_Waiting]:
        """Plan an object, and list what it needs."""
        if each.kind == BLOB and each.base is None and not each.is_node:
            self.entries[each.oid] = Planned(BLOB)
            return ()
        content = self._read(each)
        if content is None:
            return ()
        if each.is_node and each.base is None:
            each = self._find_like(each, content)
        self.entries[each.oid] = self._plan_object(each, content)
        return self._look_behind(each)

    def _look_behind(self, each: _Waiting) -> Collection[_Waiting]:
        content = self._read(each) if each.kind != BLOB else None
        if content is None:
            return ()
        newer = self._contents.get(each.base, b"") if each.base is not None else b""
        return _needed_by(each, _split(each.kind, content), _split(each.kind, newer))

    def _read(self, each: _Waiting) -> bytes | None:
        """Return the content of an object; None if it is unreadable or of another kind."""
        if each.oid in self._contents:
            return self._contents[each.oid]
        try:
            kind, content = self._objects.get_raw(each.oid)
            _split(kind, content)
        except (KeyError, ValueError, StoreDamaged):
            return None
        if kind != each.kind:
            return None
        if len(content) <= _LARGEST_DELTIFIED:
            self._contents_bytes += len(content)
            if self._contents_bytes > _HELD_BYTES:
                self._contents.clear()
                self._contents_bytes = len(content)
            self._contents[each.oid] = content
        return content

    def _find_like(self, each: _Waiting, content: bytes) -> _Waiting:
        """Return *each* with the last node of the same type (its first lines) as its base."""
        key = b"\n".join(content.split(b"\n", _LINES_TO_TYPE)[:_LINES_TO_TYPE])
        base, self._last_like[key] = self._last_like.get(key), each.oid
        return each._replace(base=base)

    def _plan_object(self, each: _Waiting, content: bytes) -> Planned:
        base = each.base
        if base is None or self._depths.get(base, 0) == _DEEPEST:
            return Planned(each.kind)
        planned = self.entries.get(base)
        if planned is None or planned.kind != each.kind:
            return Planned(each.kind)
        base_content = self._read(_Waiting(base, each.kind, None))
        if base_content is None or max(len(content), len(base_content)) > _LARGEST_DELTIFIED:
            return Planned(each.kind)
        delta = make_delta(_pieces(each.kind, base_content), _pieces(each.kind, content))
        if delta is None:
            return Planned(each.kind)
        self._depths[each.oid] = self._depths.get(base, 0) + 1
        return Planned(each.kind, base, delta)


def _pieces(kind: int, content: bytes) -> list[bytes]:
    return _LINE.findall(content) if kind == BLOB else _split(kind, content)


def _split(kind: int, content: bytes) -> list[bytes]:
    """Split a tree into its entries, and a commit or tag into lines; a blob needs nothing.

    Raises:
        ValueError: it is not a tree.
    """
    if kind == BLOB:
        return []
    return _split_tree(content) if kind == TREE else _LINE.findall(content)


def _split_tree(content: bytes) -> list[bytes]:
    entries, at = [], 0
    while at < len(content):
        end = content.index(b"\0", at) + 1 + _OID_BYTES
        entries.append(content[at:end])
        at = end
    return entries


def _needed_by(each: _Waiting, pieces: list[bytes], newer: list[bytes]) -> Collection[_Waiting]:
    """List what an object refers to; the last one is to be visited first."""
    if each.kind == COMMIT:
        return _needed_by_commit(each.oid, pieces, newer)
    if each.kind == TREE:
        return _needed_by_tree(pieces, newer)
    if each.kind == TAG and (match := _TARGET.match(b"".join(pieces[:2]))):
        return [_Waiting(ObjectID(match[1]), _KINDS[match[2]], None)]
    return []


def _needed_by_commit(
    oid: ObjectID, pieces: list[bytes], newer: list[bytes]
) -> Collection[_Waiting]:
    parents = []
    for line in pieces[1:]:
        match = _PARENT.fullmatch(line)
        if match is None:
            break
        parents.append(_Waiting(ObjectID(match[1]), COMMIT, oid))
    return [*reversed(parents), _Waiting(_tree_of(pieces), TREE, _tree_of(newer) or None)]


def _tree_of(pieces: list[bytes]) -> ObjectID:
    return ObjectID(pieces[0][5:45] if pieces else b"")


def _needed_by_tree(pieces: list[bytes], newer: list[bytes]) -> Collection[_Waiting]:
    bases = {match[2]: match[3] for match in map(_ENTRY.fullmatch, newer) if match}
    needed = []
    for match in map(_ENTRY.fullmatch, pieces):
        if match and match[1] != _SUBMODULE_MODE:
            kind = TREE if match[1] in _FOLDER_MODES else BLOB
            base = bases.get(match[2])
            base_oid = None if base in {None, match[3]} else ObjectID(base.hex().encode())
            oid = ObjectID(match[3].hex().encode())
            needed.append(_Waiting(oid, kind, base_oid, match[2].endswith(b".json")))
    # Files of which a newer version is known first: head.json is among the nodes as well, where
    # nothing tells of which other it is a version.
    return sorted(needed, key=lambda each: (each.base is not None, each.kind == BLOB))
