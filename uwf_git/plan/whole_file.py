"""Read and replace files whole: a reader sees the old content or the new one."""

import errno
import os
import stat
from contextlib import suppress

IGNORED = ".gitignore"
OUR_FOLDERS = (".state", ".plugins")
"""Folders that hold nothing of the project, whoever made them."""


_MOST_BYTES = 16 * 1024 * 1024
"""No file of ours, and no settings of a tool, come near it."""


def read_whole(path: str) -> bytes | None:
    """Return the content of *path*; None if there is no such file.

    Raises:
        OSError: it cannot be read, is too large, or is no regular file: a pipe would never end.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", path)
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {_MOST_BYTES:,} bytes", path)
    return content


def _open_at_once(path: str, flags: int) -> int:
    """Open *path*; a pipe that nobody writes to is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def replace_whole(path: str, content: bytes) -> None:
    """Write *content* to *path*, with the folders that are missing; its mode stays.

    One writer at a time: what a killed one left behind is removed by the next.

    Raises:
        OSError: the system refused; the old file is unchanged.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        with suppress(FileNotFoundError):
            os.chmod(temporary, os.stat(path).st_mode & 0o777)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def replace_if_changed(path: str, content: bytes) -> bool:
    """Replace *path* unless it holds *content* already; return whether it did.

    Raises:
        OSError: the system refused; the old file is unchanged.
    """
    with suppress(OSError):
        if read_whole(path) == content:
            return False
    replace_whole(path, content)
    return True


def keep_out_of_git(folder: str) -> None:
    """Let *folder* ignore itself in git if it is ours: it is not there yet, or has our name.

    A link is not ours: it may lead to another project.
    """
    path = os.path.join(folder, IGNORED)
    has_our_name = os.path.basename(folder) in OUR_FOLDERS and not os.path.islink(folder)
    is_ours = has_our_name or not os.path.lexists(folder)
    if is_ours and not os.path.lexists(path):
        replace_whole(path, b"*\n")
