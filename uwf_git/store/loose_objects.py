"""Loose objects: all that a store has of them, and taking away those that nobody needs.

Owns: listing the loose files, and removing one. Knows nothing of: why they are there.
Always true: what is removed is in a pack that can be read, or is needed by no ref and has not
been written or wanted since the time given.
"""

import os
import zlib
from collections.abc import Collection, Iterable

from dulwich.errors import ApplyDeltaError, ChecksumMismatch
from dulwich.objects import ObjectID, ShaFile
from dulwich.pack import PackFileDisappeared

from uwf_git.errors import StoreDamaged
from uwf_git.store.durable import remove
from uwf_git.store.objects import DurableObjects
from uwf_git.store.pack_plan import list_needed

_FOLDERS = tuple(f"{number:02x}" for number in range(256))
_REST_DIGITS = 38

# What git also asks for what is needed, and we do not read (gitrepository-layout).
_OTHER_ROOTS = ("index", "logs", "worktrees", "shallow")

# What dulwich says of packs that are cut short, overwritten or gone.
_UNREADABLE = (
    ApplyDeltaError,
    ArithmeticError,
    AssertionError,
    ChecksumMismatch,
    LookupError,
    OSError,
    PackFileDisappeared,
    TypeError,
    ValueError,
    zlib.error,
)


def list_loose(objects: str) -> list[ObjectID]:
    """List the loose objects below the folder *objects*."""
    found = []
    for folder in _FOLDERS:
        try:
            names = os.listdir(os.path.join(objects, folder))
        except FileNotFoundError:
            continue
        found += [ObjectID((folder + name).encode()) for name in names if len(name) == _REST_DIGITS]
    return found


def remove_loose(objects: DurableObjects, oids: Iterable[ObjectID]) -> None:
    """Remove the loose files of objects that are packed."""
    for oid in oids:
        remove(loose_path(objects, oid))


def remove_packed_twice(objects: DurableObjects, oids: Iterable[ObjectID]) -> set[ObjectID]:
    """Remove those loose objects that a pack has as well, and can give.

    Returns:
        The others.
    """
    left = set()
    for oid in oids:
        if _can_be_unpacked(objects, oid):
            remove(loose_path(objects, oid))
        else:
            left.add(oid)
    return left


def prune_loose(
    git_dir: str,
    objects: DurableObjects,
    oids: Collection[ObjectID],
    *,
    tips: Iterable[ObjectID],
    before_s: float,
) -> int:
    """Remove those loose objects that no ref needs, and nobody has wanted since *before_s*.

    A project's repository has other roots than refs (its index, its reflogs): there, pruning is
    left to its own git.
    """
    if any(os.path.exists(os.path.join(git_dir, name)) for name in _OTHER_ROOTS):
        return 0
    old = {oid for oid in oids if _is_older(objects, oid, before_s)}
    if not old:
        return 0
    try:
        old -= list_needed(objects, tips)
    except (KeyError, StoreDamaged):
        # Of what is damaged nobody knows what it needed.
        return 0
    pruned = 0
    for oid in old:
        # A step may have wanted it in the meantime, and have made it young again.
        if _is_older(objects, oid, before_s):
            remove(loose_path(objects, oid))
            pruned += 1
    return pruned


def loose_path(objects: DurableObjects, oid: ObjectID) -> str:
    """Give where the loose file of an object is, if there is one."""
    name = oid.decode()
    return os.path.join(objects.path, name[:2], name[2:])


def _is_older(objects: DurableObjects, oid: ObjectID, before_s: float) -> bool:
    try:
        return os.stat(loose_path(objects, oid)).st_mtime < before_s
    except FileNotFoundError:
        return False


def _can_be_unpacked(objects: DurableObjects, oid: ObjectID) -> bool:
    for pack in objects.packs:
        try:
            if oid in pack:
                kind, content = pack.get_raw(oid)
                return ShaFile.from_raw_string(kind, content).id == oid
        except _UNREADABLE:
            continue
    return False
