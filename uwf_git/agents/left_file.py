"""Read a file that an agent left: from one descriptor, up to a limit, a regular file only.

An agent, or a daemon that it left behind, may put a pipe in the place of a file, make a file of
15 TB, and write to it without end; none of these holds up its reader.
"""

import errno
import os
import stat
from contextlib import closing
from typing import NamedTuple

from uwf_git.agents.output_file import OutputFile


class LeftFile(NamedTuple):
    """The beginning of a file."""

    content: bytes
    size: int
    """How many bytes the file had when it was opened."""


def read_left_file(path: str, *, most_bytes: int, follows_links: bool = False) -> LeftFile:
    """Return at most *most_bytes* of the file *path*.

    Raises:
        OSError: as ``open_left_file``.
    """
    with closing(open_left_file(path, follows_links=follows_links)) as file:
        size = file.size()
        return LeftFile(file.read(0, min(size, most_bytes)), size)


def open_left_file(path: str, *, follows_links: bool = False) -> OutputFile:
    """Open the file *path* for reading; a symbolic link only if *follows_links*.

    Raises:
        OSError: there is none, it cannot be read, or it is not a regular file.
    """
    # O_NONBLOCK: a pipe without a writer must not block.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW)
    file = OutputFile(os.open(path, flags))
    if not stat.S_ISREG(os.fstat(file.descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    return file
