"""Packing refs: many loose files become lines of one, `packed-refs`.

Owns: what `git pack-refs --all` does, so that a kill leaves nothing that blocks git.
Knows nothing of: what refs mean. Reading them is others' business.
Always true: a loose file goes only when packed-refs holds the same value durably, and nobody
could move or delete the ref in between. Symbolic refs, those of one work tree, and those whose
object is missing stay as they are.
Source: git-pack-refs(1); gitrepository-layout(5); git's refs/packed-backend.c for the format.
"""

import os
import re
from collections.abc import Iterator, Mapping

from dulwich.objects import ObjectID, Tag
from dulwich.refs import Ref, check_ref_format

from uwf_git.errors import StoreDamaged
from uwf_git.store.durable import remove, replace_file
from uwf_git.store.objects import ObjectStore
from uwf_git.store.packed_refs import BadPackedRefs, PackedRefs
from uwf_git.store.ref_lock import PACKED_REFS, RefLocked, hold_ref_lock, markers
from uwf_git.store.refs import BadRef
from uwf_git.store.store import Store

_HEADER = b"# pack-refs with: peeled fully-peeled sorted \n"
_OID = re.compile(rb"[0-9a-f]{40}")
_LINE = re.compile(rb"([0-9a-f]{40}) (refs/[^\n]+)\n(?:\^([0-9a-f]{40})\n)?")

# Those of one work tree, which git never packs (gitrepository-layout, "refs").
_OF_ONE_TREE = ("refs/bisect/", "refs/rewritten/", "refs/worktree/")
_MOST_TAGS = 100


def pack_refs(store: Store) -> int:
    """Move loose refs into packed-refs, and tell how many.

    Raises:
        RefLocked: packed-refs stayed held by somebody else for five seconds.
        BadPackedRefs: nobody can tell what packed-refs says.
    """
    if not store.is_kept:
        return 0
    loose = dict(_list_loose(store.path))
    # Before packed-refs is locked, since whoever deletes a ref waits for that.
    peeled = _Peeled(store.objects)
    loose = {name: oid for name, oid in loose.items() if peeled.is_there(oid)}
    if not loose:
        return 0
    path = os.path.join(store.path, PACKED_REFS)
    with hold_ref_lock(store.path, PACKED_REFS, b"", durable=False):
        # Whoever deletes a ref holds this lock until its file is gone: what is there now is no
        # ref that was deleted, and what has moved since stays loose.
        loose = {name: oid for name, oid in loose.items() if _read(store.path, name) == oid}
        content = _merged(path, loose, peeled)
        durable = store.config.get_flag("uwf.fsync", default=True)
        replace_file(path, content, temporary_in=markers(store.path), durable=durable)
    return sum(_remove_loose(store, name, oid) for name, oid in loose.items())


def list_tips(git_dir: str) -> set[ObjectID]:
    """List what the refs of a git directory point at, and HEAD.

    Raises:
        BadRef, BadPackedRefs: nobody can tell what one of them says.
    """
    tips = set()
    names = [
        f"{folder}/{file}" for folder, _, files in os.walk(f"{git_dir}/refs") for file in files
    ]
    for path in [f"{git_dir}/HEAD", *names]:
        content = b"" if path.endswith(".lock") else _read_whole(path).rstrip()
        if _OID.fullmatch(content):
            tips.add(ObjectID(content))
        elif content and not content.startswith(b"ref: "):
            raise BadRef(os.path.relpath(path, git_dir))
    # After the loose ones: what was packed in between is in one of the two, or in both.
    packed = os.path.join(git_dir, PACKED_REFS)
    return tips | {ObjectID(oid) for _name, oid, _target in _parse(packed, _read_whole(packed))}


def _list_loose(git_dir: str) -> Iterator[tuple[str, bytes]]:
    """List the loose refs that hold an object id; what else there may be is left alone."""
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
        # Gone since, or one of git's very old symbolic refs, which were links.
        return None
    try:
        oid = os.read(descriptor, 1000).rstrip()
    finally:
        os.close(descriptor)
    return oid if _OID.fullmatch(oid) else None


class _Peeled:
    """What tags point at in the end, asked once for each."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._known: dict[bytes, bytes | None] = {}

    def is_there(self, oid: bytes) -> bool:
        """Tell whether the object of a ref is there, and all that it peels to."""
        try:
            self.find(oid)
        except (KeyError, StoreDamaged):
            return False
        return True

    def find(self, oid: bytes) -> bytes | None:
        """Give what the tag *oid* points at in the end; None if it is no tag.

        Raises:
            KeyError, DamagedObject: it, or a tag on the way, is missing or damaged.
        """
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
    """Give packed-refs with the *loose* ones in it, sorted, each tag with what it points at."""
    content = _read_whole(path)
    is_peeled = b" fully-peeled" in _header(content)
    refs: dict[bytes, tuple[bytes, bytes | None]] = {}
    for name, oid, told in _parse(path, content):
        target = told
        if told is None and not is_peeled and peeled.is_there(oid):
            target = peeled.find(oid)
        refs[name] = oid, target
    refs |= {os.fsencode(name): (oid, peeled.find(oid)) for name, oid in loose.items()}
    lines = (
        b"%s %s\n" % (oid, name) + (b"^%s\n" % target if target else b"")
        for name, (oid, target) in sorted(refs.items())
    )
    return _HEADER + b"".join(lines)


def _header(content: bytes) -> bytes:
    return content[: content.find(b"\n") + 1] if content.startswith(b"#") else b""


def _parse(path: str, content: bytes) -> Iterator[tuple[bytes, bytes, bytes | None]]:
    """Give the name of each ref in packed-refs, its object, and what that peels to if it is told.

    Raises:
        BadPackedRefs: a line is none.
    """
    at = len(_header(content))
    while at < len(content):
        match = _LINE.match(content, at)
        if match is None:
            line = content[at:].split(b"\n", 1)[0]
            raise BadPackedRefs(path, f"has a line that names no ref: {line[:60]!r}")
        oid, name, target = match.groups()
        yield name, oid, target
        at = match.end()


def _read_whole(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _remove_loose(store: Store, name: str, oid: bytes) -> bool:
    """Remove the file of *name* if it, and packed-refs, still say *oid*."""
    try:
        with hold_ref_lock(store.path, name, b"", durable=False):
            packed = PackedRefs(os.path.join(store.path, PACKED_REFS)).find(name)
            # It may have been deleted there, and made anew since.
            if packed == oid == _read(store.path, name):
                remove(os.path.join(store.path, name))
                return True
    except RefLocked:
        # Somebody is moving it, or a git that was killed has left its lock: it may stay loose.
        pass
    return False
