"""Read workflow files below a folder, and nothing outside it.

No link leads out of the folder, even one that is created during the read; only plain files are
read, so that a pipe cannot block.
"""

import os
import stat

from uwf_git.model.yaml.include import MAX_FILE_BYTES, CannotInclude, Includes

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe without a writer would block.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def includes_beside(path: str | None) -> Includes:
    """Return the includes of the workflow file at *path*: the files below its folder.

    With None, as for standard input, nothing can be included.
    """
    if path is None:
        return Includes(_no_folder)
    folder, name = os.path.split(os.path.abspath(path))
    return Includes(lambda inner: read_below(folder, inner), name=name)


def read_below(folder: str, path: str) -> bytes:
    """Return the file at *path* below *folder*, cut one byte above the limit for includes.

    Raises:
        CannotInclude: it does not exist, is outside the folder once links are followed, is no
            plain file, or cannot be read.
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
    """Read a file by a path without links; open folder by folder, so that no link can be added."""
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
        "standard input has no folder; name the file instead: `uwf workflow put FILE`"
    )
