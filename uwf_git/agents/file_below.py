"""Files below a directory: neither a path nor a link leads out of it, also one made meanwhile.

A path is resolved first, then walked part by part without following links.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from uwf_git.agents.output_file import OutputFile
from uwf_git.errors import AgentFailed
from uwf_git.model.path_below import check_path_below


class BadFileBelow(AgentFailed):
    """The file cannot be used, or does not lie in the directory."""

    code = "bad-file-below"

    def __init__(self, path: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path} {problem}", hint=hint, path=path)
        self.problem = problem


def remove_below(root: str, path: str) -> None:
    """Remove the file *path* below *root*, if it is there, and make the folder that holds it.

    Raises:
        BadFileBelow: it lies outside, or cannot be removed.
    """
    with (
        _told(path),
        _open_folder(root, path, create=True) as (folder, name),
        suppress(FileNotFoundError),
    ):
        os.unlink(name, dir_fd=folder)


def read_below(
    root: str, path: str, *, most_bytes: int, follows_links: bool = False
) -> bytes | None:
    """Return the content of the file *path* below *root*; None if there is none.

    The file itself may be a link only if *follows_links*, and must lie below *root* then too.

    Raises:
        BadFileBelow: it lies outside, is no regular file, is larger, or cannot be read.
    """
    with _told(path):
        try:
            if follows_links:
                path = os.path.relpath(os.path.realpath(os.path.join(root, path)), _real(root))
            with _open_folder(root, path) as (folder, name):
                # A pipe without a writer must not block.
                flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
                opened = OutputFile(os.open(name, flags, dir_fd=folder))
        except FileNotFoundError:
            return None
        with closing(opened) as file:
            if not stat.S_ISREG(os.fstat(file.descriptor).st_mode):
                raise BadFileBelow(path, "is no ordinary file")
            content = file.read(0, most_bytes + 1)
    if len(content) > most_bytes:
        raise BadFileBelow(path, f"is larger than {most_bytes // 1024:,} KiB")
    return content


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kinds = {errno.ELOOP: "is a link", errno.EISDIR: "is a directory"}
        problem = kinds.get(error.errno or 0, f"cannot be used: {error.strerror}")
        raise BadFileBelow(path, problem) from None


@contextmanager
def _open_folder(root: str, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that holds *path*; yield its descriptor, and the name of the file in it."""
    above, name = os.path.split(path)
    real_root = _real(root)
    real = os.path.realpath(os.path.join(real_root, above))
    inside = os.path.relpath(os.path.join(real, name), real_root)
    problem = check_path_below(path) or check_path_below(inside)
    if problem is not None:
        raise BadFileBelow(path, problem)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(real_root, flags)
    try:
        for part in inside.split("/")[:-1]:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def _real(root: str) -> str:
    return os.path.realpath(root)
