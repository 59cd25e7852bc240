"""Packing: a store becomes smaller.

Owns: which packer packs the objects, and counting what there is.
Knows nothing of: when a store is packed. Always true: refs are packed first, by us.
"""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from uwf_git.store.git_gc import run_git_gc
from uwf_git.store.pack_loose import pack_loose
from uwf_git.store.program import find_program
from uwf_git.store.store import Store

Packer = Literal["git", "dulwich"]

_BLOCK_BYTES = 512
_FOLDER_DIGITS = 2


class Counted(NamedTuple):
    """What a store holds in how many files."""

    loose_objects: int
    packs: int
    size_bytes: int
    """What objects and refs take on the disk: whole blocks, as `du` counts."""


def pack_objects(store: Store, environ: Mapping[str, str], *, auto: bool = False) -> Packer:
    """Pack the objects of *store*, whose gc lock the caller holds; tell who did it.

    git does it where there is one, and dulwich where not. With *auto* git only does what is due:
    it leaves large packs alone, as dulwich always does.

    Raises:
        GcRuns, PackingOvertaken: another program packs them.
        ProgramFailed: git could not.
        BadRef, BadPackedRefs: nobody can tell what is needed.
    """
    git = find_program("git", environ)
    if git is None:
        pack_loose(store)
        return "dulwich"
    run_git_gc(store, git, environ, auto=auto)
    return "git"


def count_files(store: Store) -> Counted:
    """Count what *store* holds; it takes a while for very many loose objects."""
    loose = packs = size = 0
    objects = os.path.join(store.path, "objects")
    for folder, _folders, names in os.walk(objects):
        size += sum(_size(os.path.join(folder, name)) for name in names)
        packs += sum(name.endswith(".pack") for name in names)
        if len(os.path.basename(folder)) == _FOLDER_DIGITS:
            loose += len(names)
    for folder, _folders, names in os.walk(os.path.join(store.path, "refs")):
        size += sum(_size(os.path.join(folder, name)) for name in names)
    return Counted(loose, packs, size + _size(os.path.join(store.path, "packed-refs")))


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * _BLOCK_BYTES
    except FileNotFoundError:
        # Packed in this moment, or not there.
        return 0
