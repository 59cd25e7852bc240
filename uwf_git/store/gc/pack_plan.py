"""Plan a pack: which loose objects go into it, and which are stored as a delta against which.

Only objects that refs reach are planned, so what a running step has written stays loose. A base
comes before its deltas, and no delta chain is longer than git's default.
Source: git-pack-objects(1), ``--depth``.
"""

import re
from collections.abc import Collection, Container, Iterable
from typing import NamedTuple

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.store.gc.delta import make_delta, split_lines, split_tree
from uwf_git.store.objects.objects import ObjectStore

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4

_DEEPEST = 50
_MOST_KEPT = 1000
_LARGEST_DELTIFIED = 64 * 1024
_LINES_TO_TYPE = 2
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


def plan_pack(
    objects: ObjectStore, loose: Container[ObjectID], tips: Iterable[ObjectID]
) -> dict[ObjectID, Planned]:
    """Plan a pack of all *loose* objects that *tips* reach, in the order in which to write them.

    The walk ends at packed objects, since what they reach is packed too. An unreadable object is
    left out.
    """
    plan = _Plan(objects, loose)
    for tip in tips:
        if tip in loose:
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
    def __init__(self, objects: ObjectStore, loose: Container[ObjectID]) -> None:
        self.entries: dict[ObjectID, Planned] = {}
        self._objects = objects
        self._loose = loose
        self._depths: dict[ObjectID, int] = {}
        self._last_like: dict[bytes, ObjectID] = {}
        self._pieces: dict[ObjectID, list[bytes]] = {}

    def walk(self, tip: ObjectID) -> None:
        try:
            kind, _content = self._objects.get_raw(tip)
        except (KeyError, StoreDamaged):
            return
        waiting = [_Waiting(tip, kind, None)]
        while waiting:
            each = waiting.pop()
            if each.oid in self.entries or each.oid not in self._loose:
                continue
            if each.kind == BLOB and each.base is None and not each.is_node:
                self.entries[each.oid] = Planned(BLOB)
                continue
            pieces = self._read(each)
            if pieces is not None:
                if each.is_node and each.base is None:
                    each = self._find_like(each, pieces)
                self.entries[each.oid] = self._plan_object(each, pieces)
                newer = self._pieces.get(each.base, []) if each.base is not None else []
                waiting += _needed_by(each, pieces, newer)

    def _read(self, each: _Waiting) -> list[bytes] | None:
        """Return the pieces of an object; None if it is unreadable or of another kind."""
        if each.oid in self._pieces:
            return self._pieces[each.oid]
        try:
            kind, content = self._objects.get_raw(each.oid)
            pieces = _split(kind, content)
        except (KeyError, ValueError, StoreDamaged):
            return None
        if kind != each.kind:
            return None
        if len(content) <= _LARGEST_DELTIFIED:
            if len(self._pieces) == _MOST_KEPT:
                self._pieces.clear()
            self._pieces[each.oid] = pieces
        return pieces

    def _find_like(self, each: _Waiting, pieces: list[bytes]) -> _Waiting:
        """Return *each* with the last node of the same type (its first lines) as its base."""
        key = b"".join(pieces[:_LINES_TO_TYPE])
        base, self._last_like[key] = self._last_like.get(key), each.oid
        return each._replace(base=base)

    def _plan_object(self, each: _Waiting, pieces: list[bytes]) -> Planned:
        base = each.base
        if base is None or self._depths.get(base, 0) == _DEEPEST:
            return Planned(each.kind)
        planned = self.entries.get(base)
        if planned is None or planned.kind != each.kind:
            return Planned(each.kind)
        base_pieces = self._read(_Waiting(base, each.kind, None))
        size = sum(map(len, pieces))
        if base_pieces is None or max(size, sum(map(len, base_pieces))) > _LARGEST_DELTIFIED:
            return Planned(each.kind)
        delta = make_delta(base_pieces, pieces)
        if len(delta) > size * 7 // 8:
            return Planned(each.kind)
        self._depths[each.oid] = self._depths.get(base, 0) + 1
        return Planned(each.kind, base, delta)


def _split(kind: int, content: bytes) -> list[bytes]:
    return split_tree(content) if kind == TREE else split_lines(content)


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
