"""Pack the objects of a store with git or, where there is no git, with dulwich; count its files."""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from uwf_git.store.gc.git_gc import run_git_gc
from uwf_git.store.gc.pack_without_git import pack_without_git
from uwf_git.store.git.find_program import find_program
from uwf_git.store.store import Store

Packer = Literal["git", "dulwich"]

_BLOCK_BYTES = 512
_FOLDER_DIGITS = 2


class Counted(NamedTuple):
    """How many objects and packs a store has, and their size."""

    loose_objects: int
    packs: int
    size_bytes: int
    """The size of objects and refs on the disk in whole blocks, as `du` counts."""


def pack_objects(store: Store, environ: Mapping[str, str], *, auto: bool = False) -> Packer:
    """Pack the objects of *store*, whose gc lock the caller holds; return what packed them.

    With git if there is one, else with dulwich. With *auto* git leaves large packs alone, as
    dulwich does all that are packed.

    Raises:
        GcRuns, PackingOvertaken: another program packs them.
        ProgramFailed: git failed.
        BadRef, BadPackedRefs: a ref cannot be read.
    """
    git = find_program("git", environ)
    if git is None:
        pack_without_git(store)
        return "dulwich"
    run_git_gc(store, git, environ, auto=auto)
    return "git"


def count_files(store: Store) -> Counted:
    """Count the objects and packs of *store*; slow for very many loose objects."""
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
        # It was packed in this moment, or never existed.
        return 0
