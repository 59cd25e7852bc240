"""Workflow files on the disk: reading what lies below a folder, and nothing else.

Owns: the way from a path below a folder to its bytes. Knows nothing of: YAML, workflows.
Always true: no link leads out of the folder, not even one that is put there while we read; what
is no plain file is not opened for reading, so that a pipe holds nobody up.
"""

import os
import stat

from uwf_git.model.include import MAX_FILE_BYTES, CannotInclude, Includes

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that nobody writes to would block the open itself.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def includes_beside(path: str | None) -> Includes:
    """Give what the workflow file at *path* may include: what lies below its folder.

    None is a file that lies in no folder, such as standard input: it can include nothing.
    """
    if path is None:
        return Includes(_no_folder)
    folder, name = os.path.split(os.path.abspath(path))
    return Includes(lambda inner: read_below(folder, inner), name=name)


def read_below(folder: str, path: str) -> bytes:
    """Give the file at *path* below *folder*; a byte more than may be included tells of more.

    Raises:
        CannotInclude: it is not there, or not below the folder once links are followed, or no
            plain file, or the system says no.
    """
    try:
        top = os.path.realpath(folder)
        real = os.path.realpath(os.path.join(top, path))
        if os.path.commonpath([top, real]) != top:
            raise CannotInclude(f"it is a link that leads out of {folder}")
        return _read(top, os.path.relpath(real, top).split(os.sep))
    except (OSError, ValueError) as error:
        # ValueError: the path holds a NUL.
        reason = error.strerror if isinstance(error, OSError) else None
        raise CannotInclude(reason or str(error)) from None


def _read(top: str, parts: list[str]) -> bytes:
    """Read a file by a path without links, one folder after the other, so that none is added."""
    folder = os.open(top, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        descriptor = os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CannotInclude("it is not a plain file")
        return file.read(MAX_FILE_BYTES + 1)


def _no_folder(_path: str) -> bytes:
    raise CannotInclude(
        "standard input lies in no folder; name the file instead: `uwf workflow put FILE`"
    )
