"""List and remove loose objects.

An object is removed only if a pack with it can be read, or no ref reaches it and it is old enough.
"""

import os
from collections.abc import Collection, Iterable

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.store.disk.durable import remove_file
from uwf_git.store.gc.pack_plan import list_reachable
from uwf_git.store.objects.objects import DurableObjects

_FOLDERS = tuple(f"{number:02x}" for number in range(256))
_REST_DIGITS = 38

# Roots that git follows too, and uwf does not read (gitrepository-layout).
_OTHER_ROOTS = ("index", "logs", "worktrees", "shallow")


def list_loose_objects(objects: str) -> list[ObjectID]:
    """List the loose objects below the folder *objects*."""
    found = []
    for folder in _FOLDERS:
        try:
            names = os.listdir(os.path.join(objects, folder))
        except FileNotFoundError:
            continue
        found += [ObjectID((folder + name).encode()) for name in names if len(name) == _REST_DIGITS]
    return found


def remove_loose_objects(objects: DurableObjects, oids: Iterable[ObjectID]) -> None:
    """Remove the loose files of objects that are packed."""
    for oid in oids:
        remove_file(objects.loose_path(oid))


def remove_packed_twice(objects: DurableObjects, oids: Iterable[ObjectID]) -> set[ObjectID]:
    """Remove those loose objects that can be read from a pack; return the others."""
    left = set()
    for oid in oids:
        if objects.find_packed(oid) is not None:
            remove_file(objects.loose_path(oid))
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
    """Remove those loose objects that no ref reaches and that are older than *before_s*.

    A repository with other roots than refs (an index, reflogs) is left to its own git.
    """
    if has_other_roots(git_dir):
        return 0
    old = {oid for oid in oids if _is_older(objects, oid, before_s)}
    if not old:
        return 0
    try:
        old -= list_reachable(objects, tips)
    except (KeyError, StoreDamaged):
        # What a damaged object needs is unknown.
        return 0
    pruned = 0
    for oid in old:
        # A step that writes it again meanwhile updates its time.
        if _is_older(objects, oid, before_s):
            remove_file(objects.loose_path(oid))
            pruned += 1
    return pruned


def has_other_roots(git_dir: str) -> bool:
    """Tell whether other things than refs may need objects of the repository."""
    return any(os.path.exists(os.path.join(git_dir, name)) for name in _OTHER_ROOTS)


def _is_older(objects: DurableObjects, oid: ObjectID, before_s: float) -> bool:
    try:
        return os.stat(objects.loose_path(oid)).st_mtime < before_s
    except FileNotFoundError:
        return False
