"""Pack the objects of a store, which git does; count its files."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.gc.git_gc import run_git_gc
from uwf_git.store.git.find_program import find_program
from uwf_git.store.store import Store

NO_GIT = "there is no git on the PATH, so the store cannot be packed; steps go on without"

_BLOCK_BYTES = 512
_FOLDER_DIGITS = 2


class Counted(NamedTuple):
    """How many objects and packs a store has, and their size."""

    loose_objects: int
    packs: int
    size_bytes: int
    """The size of objects and refs on the disk in whole blocks, as `du` counts."""


def pack_objects(store: Store, environ: Mapping[str, str], *, auto: bool = False) -> None:
    """Pack the objects of *store*, whose gc lock the caller holds; with *auto* not large packs.

    Raises:
        GcRuns: another git packs them.
        ProgramFailed, Refused: git failed, or there is none.
    """
    git = find_program("git", environ)
    if git is None:
        raise Refused(NO_GIT, code="no-git", hint="install git, or put it on the PATH")
    run_git_gc(store, git, environ, auto=auto)


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
