"""Durable files: what is renamed into place was on the disk before.

Owns: the order of write, fsync, rename and fsync of the directory.
Knows nothing of: git. Always true: a process killed at any point leaves the old file or the
new one under the name, and at worst a temporary file that blocks nobody.
Source: fsync(2), rename(2); git's own fsync of loose objects and refs.
"""

import os
from collections.abc import Iterable


def write_temporary(directory: str, content: bytes, *, prefix: str, durable: bool) -> str:
    """Write *content* to a new file in *directory*, which is made if it is missing.

    Returns:
        The path. The content is on the disk when *durable*.

    Raises:
        OSError: the machine would not let it be written; nothing is left behind.
    """
    path = os.path.join(directory, prefix + os.urandom(8).hex())
    descriptor = _create(path, durable=durable)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
    except BaseException:
        remove(path)
        raise
    return path


def sync_directories(directories: Iterable[str]) -> None:
    """Put the names in *directories* on the disk."""
    for directory in sorted(set(directories)):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace_file(path: str, content: bytes, *, temporary_in: str | None = None) -> None:
    """Put *content* under *path* in one move, durably.

    *temporary_in* is a folder of the same file system where a killed process may leave its
    temporary file; without it that of *path*.

    Raises:
        OSError: the machine would not let it be written; the old file is as it was.
    """
    directory = os.path.dirname(path)
    temporary = write_temporary(temporary_in or directory, content, prefix=".tmp_", durable=True)
    try:
        os.replace(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    sync_directories([directory])


def remove(path: str) -> None:
    """Remove the file at *path*, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def make_folder(path: str, *, durable: bool) -> None:
    """Make the folder *path* if it is missing; a name in it is only as durable as its own."""
    os.makedirs(path, exist_ok=True)
    if durable:
        sync_directories([os.path.dirname(path)])


def _create(path: str, *, durable: bool) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        make_folder(os.path.dirname(path), durable=durable)
        return os.open(path, flags, 0o666)
