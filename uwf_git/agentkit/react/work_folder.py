"""The work folder: the part of the file system that the file tools reach.

Nothing outside is opened or changed, whatever the path or a symbolic link says, even one that is
created meanwhile: a path is resolved first, then walked part by part without following links.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from uwf_git.errors import Refused

# Not files, even if the work folder is the root. It may lie below one of them, as in `/dev/shm`.
_NEVER = ("/proc/", "/sys/", "/dev/")

_LONGEST_SHOWN = 200


class ToolFailed(Refused):
    code = "tool-failed"


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folder *root*, an absolute path without symbolic links."""

    root: str

    kept: tuple[str, ...] = ()
    """Files and folders, without symbolic links in their paths, that are not written."""

    def locate(self, path: str) -> tuple[str, ...]:
        """Return the parts of *path* below the root; it may be absolute, and need not exist."""
        if not path.strip() or "\0" in path:
            raise ToolFailed("a path is needed, as src/main.py")
        real = os.path.realpath(os.path.join(self.root, path))
        inside = self.root.rstrip("/") + "/"
        is_special = any(
            f"{real}/".startswith(each) and not self.root.startswith(each) for each in _NEVER
        )
        if is_special or not (real == self.root or real.startswith(inside)):
            shown = path[:_LONGEST_SHOWN]
            raise ToolFailed(f"{shown} is not in the work directory, {self.root}")
        return tuple(part for part in real[len(self.root) :].split("/") if part)

    def open_file(self, path: str) -> int:
        """Open the file at *path* for reading; return its descriptor."""
        parts = self.locate(path)
        if not parts:
            raise ToolFailed(f"{path} is a directory")
        with self._open_folder(parts[:-1]) as folder:
            # A pipe without a writer must not block.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(parts[-1], flags, dir_fd=folder)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            kind = "a directory" if stat.S_ISDIR(mode) else "no ordinary file"
            raise ToolFailed(f"{path[:_LONGEST_SHOWN]} is {kind}")
        return descriptor

    def replace(self, path: str, content: bytes) -> bool:
        """Write *content* to *path* atomically; return whether the file is new.

        Missing folders are created; an existing file keeps its mode. Git directories are refused,
        whatever their name, and so are those that are *kept*: what is in them decides what the next
        git or uwf command runs.
        """
        parts = self.locate(path)
        if not parts:
            raise ToolFailed(f"{path} is a directory")
        real = os.path.join(self.root, *parts)
        is_kept = any(real == each or real.startswith(f"{each}/") for each in self.kept)
        if is_kept or any(part.lower() == ".git" for part in parts) or self._is_in_git_dir:
            raise _gits_own(path)
        with self._open_folder(parts[:-1], create=True) as folder:
            # The last one is checked here, those above it on the way.
            if _is_git_dir(folder):
                raise _gits_own(path)
            mode = _mode(parts[-1], folder)
            _replace(parts[-1], content, folder, mode)
        return mode is None

    @property
    def _is_in_git_dir(self) -> bool:
        above = self.root
        while (parent := os.path.dirname(above)) != above:
            above = parent
            if _is_git_dir(above):
                return True
        return False

    @contextmanager
    def _open_folder(self, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        folder = os.open(self.root, flags)
        try:
            for part in parts:
                if create:
                    if _is_git_dir(folder):
                        raise _gits_own("/".join(parts))
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def list_below(self, path: str, *, depth: int, most: int) -> tuple[list[str], bool]:
        """List the names below *path*, folders with a /, links with an @; return if it is all."""
        parts = self.locate(path)
        top = os.path.join(self.root, *parts)
        found: list[str] = []
        waiting = [("", depth)]
        while waiting and len(found) <= most:
            inner, left = waiting.pop()
            with os.scandir(os.path.join(top, inner) if inner else top) as entries:
                children = sorted(entries, key=lambda entry: entry.name)
            folders = []
            for entry in children:
                name = os.path.join(inner, entry.name)
                found.append(name + _mark(entry))
                # The files of git are of no use to the model.
                if left > 1 and entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                    folders.append((name, left - 1))
            waiting += folders[::-1]
        return found[:most], len(found) <= most


def open_work_folder(path: str, *, kept: Iterable[str] = ()) -> WorkFolder:
    """Return the work folder at *path*, but for *kept* files, or raise ToolFailed."""
    root = os.path.realpath(path)
    if not os.path.isdir(root):
        raise ToolFailed(f"the work directory {path[:_LONGEST_SHOWN]} does not exist")
    return WorkFolder(root, tuple(map(os.path.realpath, kept)))


def _gits_own(path: str) -> ToolFailed:
    return ToolFailed(f"{path[:_LONGEST_SHOWN]} is git's own; files there are not written")


def _is_git_dir(folder: int | str) -> bool:
    """Check whether an open folder, or the one at a path, is a git directory, as git would."""
    if isinstance(folder, str):
        return os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects")
    with suppress(OSError):
        head, objects = (os.stat(name, dir_fd=folder).st_mode for name in ("HEAD", "objects"))
        return stat.S_ISREG(head) and stat.S_ISDIR(objects)
    return False


def _mark(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "@"
    return "/" if entry.is_dir(follow_symlinks=False) else ""


def _mode(name: str, folder: int) -> int | None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise ToolFailed(f"{name} is {'a directory' if stat.S_ISDIR(mode) else 'no ordinary file'}")
    return stat.S_IMODE(mode)


def _replace(name: str, content: bytes, folder: int, mode: int | None) -> None:
    beside = f".uwf-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(beside, flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(content)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        raise
