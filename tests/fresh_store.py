"""Empty stores of tests, each in a folder of its own."""

import itertools
import sys
from pathlib import Path

from uwf_git.store.store import Store, create_store, open_store

REPOSITORY = "h\xfcb.git" if sys.platform == "darwin" else "h\udcfcb.git"
"""A name that is not UTF-8, where the file system takes such names."""

_numbers = itertools.count(1)
_folders: list[Path] = []


def keep_stores_in(folder: Path) -> None:
    """Make the stores of the test that begins now in *folder*."""
    _folders[:] = [folder]


def fresh_store() -> Store:
    """Make an empty bare store that does not wait for the disk."""
    path = _folders[0] / f"{next(_numbers)}.git"
    create_store(str(path))
    with (path / "config").open("ab") as file:
        file.write(b"[uwf]\n\tfsync = false\n")
    return open_store(str(path))
