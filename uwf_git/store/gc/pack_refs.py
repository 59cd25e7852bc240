"""Pack refs as `git pack-refs --all` does; a kill leaves nothing that blocks git.

A loose file is removed only while its ref is locked and packed-refs holds the same value durably.
Symbolic refs, refs of one work tree and refs whose object is missing stay loose.
Source: git-pack-refs(1); gitrepository-layout(5); git's refs/packed-backend.c for the format.
"""

import os
import re
from collections.abc import Iterator, Mapping

from dulwich.objects import ObjectID, Tag
from dulwich.refs import Ref, check_ref_format

from uwf_git.errors import StoreDamaged
from uwf_git.store.disk.durable import read_if_there, remove_file, replace_file
from uwf_git.store.disk.lockfile import PACKED_REFS, RefLocked, hold_ref_lock, markers
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.refs.packed_refs import (
    PACKED_HEADER,
    PackedRefs,
    parse_packed_refs,
    read_header,
)
from uwf_git.store.store import Store

_OID = re.compile(rb"[0-9a-f]{40}")

# Refs of one work tree; git never packs them (gitrepository-layout, "refs").
_OF_ONE_TREE = ("refs/bisect/", "refs/rewritten/", "refs/worktree/")
_MOST_TAGS = 100


def pack_refs(store: Store) -> int:
    """Move loose refs into packed-refs; return how many."""
    loose = dict(_list_loose(store.path))
    # Before packed-refs is locked: deleting a ref waits for that lock.
    peeled = _Peeled(store.objects)
    loose = {name: oid for name, oid in loose.items() if peeled.is_there(oid)}
    if not loose:
        return 0
    path = os.path.join(store.path, PACKED_REFS)
    with hold_ref_lock(store.path, PACKED_REFS, b"", durable=False):
        # A process that deletes a ref holds this lock until the file is gone, so no ref read now
        # was deleted. A ref that has moved since stays loose.
        loose = {name: oid for name, oid in loose.items() if _read(store.path, name) == oid}
        content = _merged(path, loose, peeled)
        durable = store.config.get_flag("uwf.fsync", default=True)
        replace_file(path, content, temporary_in=markers(store.path), durable=durable)
    return sum(_remove_loose(store, name, oid) for name, oid in loose.items())


def _list_loose(git_dir: str) -> Iterator[tuple[str, bytes]]:
    for folder, _folders, files in os.walk(os.path.join(git_dir, "refs")):
        prefix = os.path.relpath(folder, git_dir) + "/"
        if prefix.startswith(_OF_ONE_TREE):
            continue
        for file in files:
            name = prefix + file
            oid = _read(git_dir, name) if check_ref_format(Ref(os.fsencode(name))) else None
            if oid is not None:
                yield name, oid


def _read(git_dir: str, name: str) -> bytes | None:
    try:
        descriptor = os.open(os.path.join(git_dir, name), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        # Gone, or a symbolic ref of a very old git, which was a symlink.
        return None
    try:
        oid = os.read(descriptor, 1000).rstrip()
    finally:
        os.close(descriptor)
    return oid if _OID.fullmatch(oid) else None


class _Peeled:
    """What tags peel to, looked up once for each."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._known: dict[bytes, bytes | None] = {}

    def is_there(self, oid: bytes) -> bool:
        try:
            self.find(oid)
        except (KeyError, StoreDamaged):
            return False
        return True

    def find(self, oid: bytes) -> bytes | None:
        if oid not in self._known:
            self._known[oid] = self._peel(oid)
        return self._known[oid]

    def _peel(self, oid: bytes) -> bytes | None:
        at = oid
        for _tag in range(_MOST_TAGS):
            found = self._objects[ObjectID(at)]
            if not isinstance(found, Tag):
                return at if at != oid else None
            at = found.object[1]
        raise KeyError(oid)


def _merged(path: str, loose: Mapping[str, bytes], peeled: _Peeled) -> bytes:
    """Return the content of packed-refs with the *loose* refs added, sorted, tags peeled."""
    content = read_if_there(path)
    is_peeled = b" fully-peeled" in read_header(content)
    refs: dict[bytes, tuple[bytes, bytes | None]] = {}
    for row in parse_packed_refs(path, content):
        target: bytes | None = row.peeled
        if not row.peeled and not is_peeled and peeled.is_there(row.oid):
            target = peeled.find(row.oid)
        refs[row.name] = row.oid, target
    refs |= {os.fsencode(name): (oid, peeled.find(oid)) for name, oid in loose.items()}
    lines = (
        b"%s %s\n" % (oid, name) + (b"^%s\n" % target if target else b"")
        for name, (oid, target) in sorted(refs.items())
    )
    return PACKED_HEADER + b"".join(lines)


def _remove_loose(store: Store, name: str, oid: bytes) -> bool:
    try:
        with hold_ref_lock(store.path, name, b"", durable=False):
            packed = PackedRefs(os.path.join(store.path, PACKED_REFS)).find(name)
            # The ref may have been deleted and created again since.
            if packed == oid == _read(store.path, name):
                remove_file(os.path.join(store.path, name))
                return True
    except RefLocked:
        # Another process moves it, or a killed git left its lock: it may stay loose.
        pass
    return False
