"""Folders of nodes, compared: what is new below `nodes/` since another commit.

Reads raw trees, goes only into folders that differ, and reads a remembered folder only once; the
memory is bounded. A folder that cannot be read is reported once, where it came in.
Format: FORMAT.md, "The tree of a thread commit".
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple, TypeAlias

from dulwich.objects import ObjectID, Tree

from uwf_git.errors import StoreDamaged
from uwf_git.model.names import NodeHash
from uwf_git.store.nodes import JSON_SUFFIX, TEXT_SUFFIX
from uwf_git.store.objects.objects import ObjectStore, damaged_object

RAW_FILE_MODE = b"100644"
RAW_TREE_MODE = b"40000"

TreeEntry: TypeAlias = tuple[bytes, bytes]
"""A mode as git writes it, and the 20 bytes of an object id, as in a raw tree."""

Folder: TypeAlias = Mapping[bytes, TreeEntry]

_Change: TypeAlias = tuple[TreeEntry | None, TreeEntry | None]

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

# An entry takes about 250 bytes, so at most 50 MB. A thread of 10,000 steps has up to 30,000.
_MOST_ENTRIES = 200_000

NodeFileChangeKind = Literal["added", "replaced", "lost", "odd", "damaged"]


def object_id(raw: bytes) -> ObjectID:
    return ObjectID(raw.hex().encode())


class NodeFileChange(NamedTuple):
    kind: NodeFileChangeKind
    path: str
    """From the top of the commit's tree."""

    blob: bytes | None = None
    """The 20 bytes of the id of the blob that is there now; None if there is no node to read."""

    name: NodeHash | None = None
    """The name of the node by its path; None if the path is not the path of a node."""

    problem: str = ""
    """What is wrong with an ``odd`` or ``damaged`` entry."""

    hint: str = ""


class NodeFolders:
    """The folders of nodes of a store, remembered once read."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._folders: dict[bytes, Folder] = {}
        self._entries = 0

    def get(self, raw: bytes) -> Folder:
        """Return the entries of the tree with the 20-byte id *raw*, in their order."""
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
        """Forget a folder that was replaced, or that is read only once."""
        self._entries -= len(self._folders.pop(raw, ()))

    def find(self, nodes: bytes, name: NodeHash) -> bytes | None:
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

    def compare(self, old: bytes | None, new: bytes, *, keep_old: bool) -> Iterator[NodeFileChange]:
        """Yield the differences from folder *old* (None is empty) to *new*, in order of paths.

        Unless *keep_old*, forget the old folders that differ.
        """
        yield from self._compare(("nodes", ""), old, new, keep_old=keep_old)

    def _compare(
        self, place: tuple[str, str], old: bytes | None, new: bytes | None, *, keep_old: bool
    ) -> Iterator[NodeFileChange]:
        path, name = place
        try:
            now = {} if new is None else self.get(new)
        except StoreDamaged as error:
            yield NodeFileChange("damaged", path, problem=error.message, hint=error.hint or "")
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
        with suppress(StoreDamaged):
            return {} if raw is None else self.get(raw)
        # Reported where it came in; everything that replaced it is new.
        return {}

    def _compare_folder(
        self, place: tuple[str, str], key: bytes, change: _Change, *, keep_old: bool
    ) -> Iterator[NodeFileChange]:
        path, name = place
        before, now = change
        if now is not None and _LEVELS[len(name)].fullmatch(key) is None:
            yield NodeFileChange("odd", path, problem="does not belong there")
            return
        if now is not None and now[0] != RAW_TREE_MODE:
            problem = f"is not a folder: its mode is {now[0].decode()}"
            yield NodeFileChange("odd", path, problem=problem)
            return
        old = before[1] if before is not None and before[0] == RAW_TREE_MODE else None
        inner = (path, name + _shown(key))
        yield from self._compare(inner, old, None if now is None else now[1], keep_old=keep_old)

    def _read(self, oid: ObjectID) -> Folder:
        try:
            kind, content = self._objects.get_raw(oid)
        except KeyError:
            raise damaged_object(oid, "is missing") from None
        if kind != Tree.type_num:
            raise damaged_object(oid, "is not a tree")
        if _FAN.fullmatch(content) is not None:
            fan = _Fan(content)
            if bytes(sorted(set(fan.names))) == fan.names:
                return fan
        found = _ENTRY.findall(content)
        folder = {name: (mode, raw) for mode, name, raw in found}
        if _ENTRIES.fullmatch(content) is None or len(folder) != len(found):
            raise damaged_object(oid, "is not a tree that git would write")
        names = list(folder)
        if names != sorted(names) and names != sorted(names, key=lambda each: _order(each, folder)):
            raise damaged_object(oid, "is a tree out of order, in which git finds nothing")
        return folder


def _compare_file(
    place: tuple[str, str], key: bytes, change: _Change, now: Folder
) -> Iterator[NodeFileChange]:
    path, start = place
    match = _LEAF.fullmatch(key)
    before, after = change
    name = None if match is None else NodeHash(start + match[1].decode())
    if after is None:
        if name is not None:
            yield NodeFileChange("lost", path, name=name)
    elif match is None or name is None:
        yield NodeFileChange("odd", path, problem="does not belong there")
    elif after[0] != RAW_FILE_MODE:
        problem = f"has mode {after[0].decode()}, and a node's file has {RAW_FILE_MODE.decode()}"
        yield NodeFileChange("odd", path, name=name, problem=problem)
    else:
        twin = match[1] + _OTHER[match[2]]
        if twin in now:
            problem = f"is there a second time, as {twin.decode()}"
            yield NodeFileChange("odd", path, name=name, problem=problem)
        is_new = before is None or before[0] != RAW_FILE_MODE
        yield NodeFileChange("added" if is_new else "replaced", path, after[1], name)


def _order(name: bytes, folder: Folder) -> bytes:
    """Return the key by which git sorts the entries of a tree."""
    return name + b"/" if folder[name][0] == RAW_TREE_MODE else name


def _shown(key: bytes) -> str:
    return key.decode(errors="backslashreplace")


class _Fan(Mapping[bytes, TreeEntry]):
    """A folder of one-character folders as raw bytes: most commits change one of 32 entries."""

    __slots__ = ("content", "names")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.names = content[_FAN_NAME::_FAN_STEP]

    def __getitem__(self, key: bytes) -> TreeEntry:
        raw = self.find(key)
        if raw is None:
            raise KeyError(key)
        return RAW_TREE_MODE, raw

    def find(self, key: bytes) -> bytes | None:
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
    return raw if mode == RAW_TREE_MODE else None


def _differing(before: Folder, now: Folder) -> list[bytes]:
    if isinstance(before, _Fan) and isinstance(now, _Fan) and before.names == now.names:
        return _differing_in_fans(before.content, now.content, now.names)
    if not before:
        return list(now)
    found = [key for key, entry in now.items() if before.get(key) != entry]
    gone = [key for key in before if key not in now]
    return sorted(found + gone) if gone else found


def _differing_in_fans(before: bytes, now: bytes, names: bytes) -> list[bytes]:
    """Return the names whose ids differ; XOR as one number finds the first difference fast."""
    different = int.from_bytes(before, "big") ^ int.from_bytes(now, "big")
    first = (len(now) - (different.bit_length() + 7) // 8) // _FAN_STEP
    return [
        names[at : at + 1]
        for at in range(first, len(names))
        if before[at * _FAN_STEP : (at + 1) * _FAN_STEP]
        != now[at * _FAN_STEP : (at + 1) * _FAN_STEP]
    ]
