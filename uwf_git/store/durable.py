"""Write files durably: write, fsync, rename, fsync of the folder, in that order.

A killed process leaves the old or the new file under the name, and at worst a temporary file.

Correctness needs only fsync(2): of a file for its content, of a folder for its names. The rest
saves time. Several files are written before the first is forced, and posix_fadvise tells the
system to start writing all of them; on a file system with a journal the first fsync then takes
the others along.
Source: fsync(2), rename(2), posix_fadvise(2); git's own fsync of loose objects and refs.
"""

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Generic, NamedTuple, TypeVar

from uwf_git.errors import StoreFailed
from uwf_git.model.text import quote_path
from uwf_git.surroundings import open_regular

# Windows has none.
with suppress(ImportError):
    import pwd

TEMPORARY = ".tmp_"
"""The prefix of temporary files; a killed process may leave one."""

_HINT: Callable[[int, int, int, int], None] | None = getattr(os, "posix_fadvise", None)
_NOT_WANTED: int = getattr(os, "POSIX_FADV_DONTNEED", 0)


def add_files(
    contents: Iterable[tuple[str, bytes]],
    *,
    temporary_in: str,
    durable: bool,
    prefix: str = TEMPORARY,
    mode: int = 0o666,
    like: os.stat_result | None = None,
) -> list[str]:
    """Write each content to its path: all contents first, then all names, in their order.

    The temporary files are in *temporary_in*, on the same file system. They get owner, group and
    permissions of *like*, as far as this process may give them away. Return the paths. If
    *durable*, their contents are on the disk; their names are there only after
    ``sync_directories`` of their folders. After an OSError files stay that already have their name.
    """
    waiting: list[tuple[str, str]] = []
    opened: list[int] = []
    try:
        for path, content in contents:
            temporary = os.path.join(temporary_in, prefix + os.urandom(8).hex())
            opened.append(_create(temporary, mode if like is None else 0o600, durable=durable))
            waiting.append((temporary, path))
            if like is not None:
                with suppress(PermissionError):
                    os.fchown(opened[-1], like.st_uid, like.st_gid)
                os.fchmod(opened[-1], like.st_mode & 0o777)
            with _named(temporary_in):
                _write(opened[-1], content)
            if durable and _HINT is not None:
                _HINT(opened[-1], 0, 0, _NOT_WANTED)
        for descriptor in opened if durable else ():
            with _named(temporary_in):
                os.fsync(descriptor)
        for temporary, path in waiting:
            os.replace(temporary, path)
    except BaseException:
        for temporary, _path in waiting:
            remove_file(temporary)
        raise
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return [path for _temporary, path in waiting]


def sync_directories(directories: Iterable[str]) -> None:
    for directory in sorted(set(directories)):
        with suppress(FileNotFoundError):
            sync_path(directory)


def sync_folder(path: str) -> None:
    for folder, _folders, files in os.walk(path, topdown=False):
        for name in files:
            sync_path(os.path.join(folder, name))
        sync_path(folder)
    sync_path(os.path.dirname(path))


def replace_file(
    path: str,
    content: bytes,
    *,
    temporary_in: str | None = None,
    durable: bool = True,
    mode: int = 0o666,
    like: os.stat_result | None = None,
) -> None:
    """Replace the file at *path* atomically; if *durable*, force it to the disk.

    *temporary_in* is a folder on the same file system, by default the folder of *path*. After an
    OSError the old file is unchanged.
    """
    directory = os.path.dirname(path)
    folder = temporary_in or directory
    add_files([(path, content)], temporary_in=folder, durable=durable, mode=mode, like=like)
    if durable:
        sync_directories([directory])


def read_if_there(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


# Files of the store's own, below `<git dir>/uwf/` and beside it. Where several users share a store,
# another may have put a link there, to what only this one may read or remove: none is followed.

_MOST_BYTES = 16 * 1024 * 1024


def join_below(top: str, *parts: str) -> str:
    """Return a path below *top*; StoreFailed if it leads through a link to a folder."""
    path = top
    for part in parts:
        path = os.path.join(path, part)
        if os.path.islink(path) and os.path.isdir(path):
            shown = quote_path(path)
            raise StoreFailed(
                f"{path} is a link to another folder, which uwf does not enter",
                code="linked-folder",
                hint=f"see whose it is with `ls -l {shown}`: if not yours, remove it: `rm {shown}`"
                "; if you moved the folder to another disk, mount it there (`mount --bind`)",
                path=path,
            )
    return path


def read_local(path: str) -> bytes:
    """Return the content of the file *path* as ``find_local``; b"" for none."""
    return find_local(path) or b""


def find_local(path: str) -> bytes | None:
    """Return the content of the file *path*; None for none, a link, and no regular file."""
    try:
        descriptor = open_regular(path)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP, errno.EINVAL, errno.ENXIO}:
            return None
        raise
    with open(descriptor, "rb") as file:
        return file.read(_MOST_BYTES)


def list_names(folder: str) -> list[str]:
    """List what is in *folder*; an empty list if there is no such folder."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def list_entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def remove_file(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def make_folder(path: str, *, durable: bool) -> None:
    """Create the folder *path* and its missing parents.

    If *durable*, sync the parents too, up to the first one that existed: a name is only as durable
    as the name of its folder.
    """
    above = os.path.dirname(path)
    holders = [above]
    while above and not os.path.isdir(above):
        above = os.path.dirname(above)
        holders.append(above)
    os.makedirs(path, exist_ok=True)
    if durable:
        sync_directories(holders)


def _create(path: str, mode: int, *, durable: bool) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, mode)
    except FileNotFoundError:
        make_folder(os.path.dirname(path), durable=durable)
        return os.open(path, flags, mode)


def _write(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def sync_path(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with _named(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _named(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = place
        raise


# What was read from a file, kept until the file changes, so that many steps read it once.
#
# A file counts as unchanged while its stamp is the same: device, inode, size, mtime, ctime. This
# cannot miss a change. Who writes into a file, or renames another over it, sets a ctime, which no
# program can set back. A change in the same tick of the clock would leave the same stamp, so what
# changed a moment before it was read is not kept. On a network file system a stamp may be some
# seconds old, as it is for git, which asks packed-refs in the same way. Source: stat(2); git's
# racy-git.txt, stat_validity_check in read-cache.c.

Value = TypeVar("Value")

# Ticks are at most 10 ms, and a machine that is shared may miss some; file systems that count in
# seconds show no fractions.
_TICK_NS = 100_000_000
_COARSE_TICK_NS = 3_000_000_000


class Stamp(NamedTuple):
    """What changes whenever a file or a folder does."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


def stamp_of(found: os.stat_result) -> Stamp:
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def read_stamp(path: str) -> Stamp | None:
    try:
        return stamp_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_settled(stamp: Stamp | None, *, now_ns: int) -> bool:
    """Tell whether a change after *now_ns*, taken before *stamp*, would show another stamp."""
    if stamp is None:
        return True
    changed_ns = max(stamp.mtime_ns, stamp.ctime_ns)
    is_coarse = changed_ns % 1_000_000_000 == 0
    return now_ns - changed_ns > (_COARSE_TICK_NS if is_coarse else _TICK_NS)


class FileMemory(Generic[Value]):
    """A value for each of the files that were read last; values of larger files are not kept.

    Python threads may share it, for each call on the dictionary is atomic; a forked child has its
    own copy.
    """

    def __init__(
        self, most: int, *, largest: int = 256 * 1024, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._most, self._largest, self._now_ns = most, largest, now_ns
        self._held: dict[str, tuple[Stamp | None, Value]] = {}

    def read(self, path: str, read: Callable[[str], Value]) -> Value:
        """Return what *read* returns for *path*, or returned when the file was as it is now.

        The value is shared: nobody may change it. If *read* raises, nothing is kept.
        """
        # The time and the stamp first: what changes while it is read has another stamp afterwards.
        now_ns = self._now_ns()
        try:
            stamp = read_stamp(path)
        except OSError:
            # Reading it says what is wrong.
            return read(path)
        held = self._held.get(path)
        if held is not None and held[0] == stamp:
            return held[1]
        value = read(path)
        is_small = stamp is None or stamp.size <= self._largest
        if is_small and is_settled(stamp, now_ns=now_ns):
            self._held.pop(path, None)
            while len(self._held) >= self._most:
                self._held.pop(next(iter(self._held), path), None)
            self._held[path] = stamp, value
        return value


# The user's own files about a store: below the XDG state directory, a folder for each store.
#
# What a user decided about a store does not lie in the store, which others may have written.
# Source: XDG Base Directory Specification, $XDG_STATE_HOME.


def find_user_file(git_dir: str, environ: Mapping[str, str], name: str) -> str | None:
    """Return the path of the user's file *name* about a store, or None if there is no home."""
    state = environ.get("XDG_STATE_HOME", "")
    # The specification says that a relative path is to be ignored.
    if not os.path.isabs(state):
        home = environ.get("HOME", "")
        if not os.path.isabs(home):
            # Cron jobs and hooks may have no HOME.
            with suppress(NameError, KeyError):
                home = pwd.getpwuid(os.geteuid()).pw_dir
        if not os.path.isabs(home):
            return None
        state = os.path.join(home, ".local", "state")
    key = hashlib.sha256(os.fsencode(os.path.realpath(git_dir))).hexdigest()
    return os.path.join(state, "uwf", "stores", key, name)
