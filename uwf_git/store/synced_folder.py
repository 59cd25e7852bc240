"""Synced folders: everything below a folder, on the disk.

Owns: forcing a whole tree of files at once: the first one that is forced takes most of the others
along, so that thousands cost hardly more than one. Knows nothing of: what is in them.
Source: fsync(2).
"""

import os


def sync_folder(path: str) -> None:
    """Put all that is in the folder *path*, and its own name, on the disk.

    Raises:
        OSError: the machine did not.
    """
    for folder, _folders, files in os.walk(path, topdown=False):
        for name in files:
            _sync(os.path.join(folder, name))
        _sync(folder)
    _sync(os.path.dirname(path))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
