"""Node files: what lies below `nodes/`, and what is new there since the commit before.

Owns: walking two such folders side by side, going only into what differs; the rules of names,
suffixes and modes; finding a node's file.
Knows nothing of: what is in a file, why it changed.
Always true: a folder is read at most once while it is remembered, and what is remembered is
bounded; a folder that cannot be read is told once, where it came in.
Format: FORMAT.md, "The tree of a thread commit".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from dulwich.objects import ObjectID, Tree

from uwf_git.errors import StoreDamaged
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.node_blob import JSON_SUFFIX, TEXT_SUFFIX
from uwf_git.store.objects import DamagedObject, ObjectStore

FILE = b"100644"
FOLDER = b"40000"

Entry: TypeAlias = tuple[bytes, bytes]
"""The mode as git writes it, and the 20 bytes of an object id, as they stand in a tree."""

Folder: TypeAlias = Mapping[bytes, Entry]

_ENTRY = re.compile(rb"([1-7][0-7]{4,5}) ([^\0/]+)\0(.{20})", re.DOTALL)
_ENTRIES = re.compile(rb"(?:[1-7][0-7]{4,5} [^\0/]+\0.{20})*", re.DOTALL)
# A folder of folders with names of one character: each entry has the same size.
_FAN = re.compile(rb"(?:40000 [0-9A-Z]\0.{20})+", re.DOTALL)
_FAN_STEP, _FAN_NAME, _FAN_ID = 28, 6, 8

_OUTER = re.compile(rb"[0-9A-F]")
_INNER = re.compile(rb"[0-9A-HJKMNP-TV-Z]")
_LEAF = re.compile(rb"([0-9A-HJKMNP-TV-Z]{11})(\.json|\.md)")
_LEVELS = (_OUTER, _INNER)

_OTHER = {JSON_SUFFIX.encode(): TEXT_SUFFIX.encode(), TEXT_SUFFIX.encode(): JSON_SUFFIX.encode()}

# An entry takes about 250 bytes: 50 MB. A thread of 10,000 steps has 20,000 to 30,000.
_MOST_ENTRIES = 200_000

Kind = Literal["added", "replaced", "lost", "odd", "damaged"]


def object_id(raw: bytes) -> ObjectID:
    """Give the id of an object as all but trees spell it."""
    return ObjectID(raw.hex().encode())


class Change(NamedTuple):
    """One difference between two folders of nodes."""

    kind: Kind
    path: str
    """From the top of the commit's tree."""

    blob: bytes | None = None
    """The 20 bytes of the id of what is there now; None if there is nothing to be looked at."""

    name: NodeHash | None = None
    """The node that it is by its place; None of what is no node."""

    problem: str = ""
    """What is wrong, of what is odd or damaged."""

    hint: str = ""
    """What its error says is to be done."""


class NodeFolders:
    """The folders of nodes of a store, as they are asked for."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._folders: dict[bytes, Folder] = {}
        self._entries = 0

    def get(self, raw: bytes) -> Folder:
        """Give what the tree whose id is the 20 bytes *raw* holds, in its order.

        Raises:
            DamagedObject: it is missing, or no tree that git would write.
        """
        known = self._folders.get(raw)
        if known is None:
            known = self._read(object_id(raw))
            if self._entries > _MOST_ENTRIES:
                self._folders.clear()
                self._entries = 0
            self._folders[raw] = known
            self._entries += len(known)
        return known

    def forget(self, raw: bytes) -> None:
        """Let go of a folder that another has taken the place of, or that is asked for once."""
        self._entries -= len(self._folders.pop(raw, ()))

    def find(self, nodes: bytes, name: NodeHash) -> bytes | None:
        """Give the blob of the node *name* in the folder *nodes*, or None.

        Raises:
            DamagedObject: a folder on the way cannot be read.
        """
        folder = self.get(nodes)
        for part in (name[0], name[1]):
            raw = _find_folder(folder, part.encode())
            if raw is None:
                return None
            folder = self.get(raw)
        stem = name[2:].encode()
        for suffix in _OTHER:
            found = folder.get(stem + suffix)
            if found is not None:
                return found[1]
        return None

    def compare(self, old: bytes | None, new: bytes, *, keep_old: bool) -> Iterator[Change]:
        """Give what differs in the folder *new* from *old* (None is empty), in order of paths.

        Unless *keep_old*, the old folders that differ are forgotten.
        """
        yield from self._compare(("nodes", ""), old, new, keep_old=keep_old)

    def _compare(
        self, place: tuple[str, str], old: bytes | None, new: bytes | None, *, keep_old: bool
    ) -> Iterator[Change]:
        path, name = place
        try:
            now = {} if new is None else self.get(new)
        except StoreDamaged as error:
            yield Change("damaged", path, problem=error.message, hint=error.hint or "")
            return
        before = self._get_if_whole(old)
        for key in _differing(before, now):
            change = (before.get(key), now.get(key))
            inner = (f"{path}/{_shown(key)}", name)
            if len(name) < len(_LEVELS):
                yield from self._compare_folder(inner, key, change, keep_old=keep_old)
            else:
                yield from _compare_file(inner, key, change, now)
        if old is not None and not keep_old:
            self.forget(old)

    def _get_if_whole(self, raw: bytes | None) -> Folder:
        try:
            return {} if raw is None else self.get(raw)
        except StoreDamaged:
            # Told where it came in; everything that is in its place now is new.
            return {}

    def _compare_folder(
        self,
        place: tuple[str, str],
        key: bytes,
        change: tuple[Entry | None, Entry | None],
        *,
        keep_old: bool,
    ) -> Iterator[Change]:
        path, name = place
        before, now = change
        if now is not None and _LEVELS[len(name)].fullmatch(key) is None:
            yield Change("odd", path, problem="does not belong there")
            return
        if now is not None and now[0] != FOLDER:
            yield Change("odd", path, problem=f"is no folder: its mode is {now[0].decode()}")
            return
        old = before[1] if before is not None and before[0] == FOLDER else None
        inner = (path, name + _shown(key))
        yield from self._compare(inner, old, None if now is None else now[1], keep_old=keep_old)

    def _read(self, oid: ObjectID) -> Folder:
        try:
            kind, content = self._objects.get_raw(oid)
        except KeyError:
            raise DamagedObject(oid, "is missing") from None
        if kind != Tree.type_num:
            raise DamagedObject(oid, "is not a tree")
        if _FAN.fullmatch(content) is not None:
            fan = _Fan(content)
            if bytes(sorted(set(fan.names))) == fan.names:
                return fan
        found = _ENTRY.findall(content)
        folder = {name: (mode, raw) for mode, name, raw in found}
        if _ENTRIES.fullmatch(content) is None or len(folder) != len(found):
            raise DamagedObject(oid, "is not a tree that git would write")
        names = list(folder)
        if names != sorted(names) and names != sorted(names, key=lambda each: _order(each, folder)):
            raise DamagedObject(oid, "is a tree out of order, in which git finds nothing")
        return folder


def _compare_file(
    place: tuple[str, str], key: bytes, change: tuple[Entry | None, Entry | None], now: Folder
) -> Iterator[Change]:
    path, start = place
    match = _LEAF.fullmatch(key)
    before, after = change
    name = None if match is None else NodeHash(start + match[1].decode())
    if after is None:
        if name is not None:
            yield Change("lost", path, name=name)
    elif match is None or name is None:
        yield Change("odd", path, problem="does not belong there")
    elif after[0] != FILE:
        problem = f"has mode {after[0].decode()}, and a node's file has {FILE.decode()}"
        yield Change("odd", path, name=name, problem=problem)
    else:
        twin = match[1] + _OTHER[match[2]]
        if twin in now:
            problem = f"is there a second time, as {twin.decode()}"
            yield Change("odd", path, name=name, problem=problem)
        kind: Kind = "added" if before is None or before[0] != FILE else "replaced"
        yield Change(kind, path, after[1], name)


def _order(name: bytes, folder: Folder) -> bytes:
    """Give what git sorts the entries of a tree by."""
    return name + b"/" if folder[name][0] == FOLDER else name


def _shown(key: bytes) -> str:
    return key.decode(errors="backslashreplace")


class _Fan(Mapping[bytes, Entry]):
    """A folder of folders, as git's own bytes: most commits change one entry of 32."""

    __slots__ = ("content", "names")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.names = content[_FAN_NAME::_FAN_STEP]

    def __getitem__(self, key: bytes) -> Entry:
        raw = self.find(key)
        if raw is None:
            raise KeyError(key)
        return FOLDER, raw

    def find(self, key: bytes) -> bytes | None:
        """Give the id of the folder *key*, or None."""
        at = self.names.find(key) if len(key) == 1 else -1
        start = at * _FAN_STEP + _FAN_ID
        return None if at < 0 else self.content[start : start + 20]

    def __iter__(self) -> Iterator[bytes]:
        return (self.names[at : at + 1] for at in range(len(self.names)))

    def __len__(self) -> int:
        return len(self.names)


def _find_folder(folder: Folder, key: bytes) -> bytes | None:
    if isinstance(folder, _Fan):
        return folder.find(key)
    mode, raw = folder.get(key, (b"", b""))
    return raw if mode == FOLDER else None


def _differing(before: Folder, now: Folder) -> list[bytes]:
    if isinstance(before, _Fan) and isinstance(now, _Fan) and before.names == now.names:
        return _differing_in_fans(before.content, now.content, now.names)
    if not before:
        return list(now)
    found = [key for key, entry in now.items() if before.get(key) != entry]
    gone = [key for key in before if key not in now]
    return sorted(found + gone) if gone else found


def _differing_in_fans(before: bytes, now: bytes, names: bytes) -> list[bytes]:
    """Give the names whose ids differ: as one number, the first bit that does is found at once."""
    different = int.from_bytes(before, "big") ^ int.from_bytes(now, "big")
    first = (len(now) - (different.bit_length() + 7) // 8) // _FAN_STEP
    return [
        names[at : at + 1]
        for at in range(first, len(names))
        if before[at * _FAN_STEP : (at + 1) * _FAN_STEP]
        != now[at * _FAN_STEP : (at + 1) * _FAN_STEP]
    ]
