"""Files that agents leave or name: below a directory, up to a limit, while they grow."""

import errno
import os
import struct
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, NamedTuple

from uwf_git.agents.command_line import BadJson, OnOutput, parse_strict_json
from uwf_git.errors import AgentFailed, UwfError
from uwf_git.model.names import check_path_below
from uwf_git.surroundings import open_regular

with suppress(ImportError):
    # Windows has none, and reads files by this module.
    import fcntl

# Output files: what a program writes into a file, read while the file grows.

_CHUNK_BYTES = 64 * 1024
_READ_BYTES = 1024 * 1024

# FS_IOC_RESVSP and its `struct space_resv` (linux/falloc.h): fallocate(2) with
# FALLOC_FL_KEEP_SIZE, for which Python has no call.
_RESERVE = 0x40305828
_SPACE = struct.Struct("@hhqqiI4i")
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@dataclass(slots=True)
class OutputFile:
    descriptor: int
    offset: int = 0

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def read_new(self, *, limit: int | None = None) -> Iterator[bytes]:
        """Yield what came since the last call, in chunks, but nothing behind byte *limit*."""
        size = self.size() if limit is None else min(self.size(), limit)
        if size < self.offset:
            # `echo … >/dev/stderr` truncates the file, where it would write to a terminal.
            self.offset = 0
        while self.offset < size:
            length = min(_CHUNK_BYTES, size - self.offset)
            chunk = os.pread(self.descriptor, length, self.offset)
            if not chunk:
                return
            self.offset += len(chunk)
            yield chunk

    def read(self, start: int, length: int) -> bytes:
        """Return at most *length* bytes from byte *start* on."""
        chunks = []
        while length > 0 and (chunk := os.pread(self.descriptor, min(length, _READ_BYTES), start)):
            chunks.append(chunk)
            start += len(chunk)
            length -= len(chunk)
        return b"".join(chunks)

    def read_tail(self, length: int) -> bytes:
        return self.read(max(0, self.size() - length), length)

    def skip_to_last(self, length: int) -> None:
        """Leave unread what is before the last *length* bytes, and the rest of its line."""
        start = self.size() - length
        if start > self.offset:
            self.offset = start + self.read(start, _CHUNK_BYTES).find(b"\n") + 1

    def close(self) -> None:
        """Close the file; it stays on disk."""
        os.close(self.descriptor)


class Outputs(NamedTuple):
    """The files into which a program prints."""

    stdout: OutputFile
    stderr: OutputFile

    def close(self) -> None:
        """Close the outputs; the files stay."""
        self.stdout.close()
        self.stderr.close()


Heard = Iterable[tuple[OutputFile, OnOutput | None]]
"""Outputs, and who is to hear of each."""


def forward(heard: Heard, *, at_most: int | None = None, limit: int | None = None) -> bool:
    """Pass new output on, at most *at_most* chunks of each; return whether there was any."""
    is_new = False
    for output, hear in heard:
        if hear is not None:
            for chunk in islice(output.read_new(limit=limit), at_most):
                hear(chunk)
                is_new = True
    return is_new


def create_output(path: str, *, reserved_bytes: int = 0, mode: int = 0o600) -> OutputFile:
    """Create the empty file *path* in place of an older file; see `reserve` for the bytes."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    # Scripts truncate at /dev/stdout and /dev/stderr; without O_APPEND that would leave a hole.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    output = OutputFile(os.open(path, flags, mode))
    try:
        if reserved_bytes:
            reserve(output.descriptor, reserved_bytes)
    except OSError as error:
        output.close()
        os.unlink(path)
        raise OSError(error.errno, error.strerror, path) from None
    return output


def reserve(descriptor: int, length: int) -> None:
    """Reserve *length* bytes on the disk for an empty file, whose size stays 0.

    A truncation gives them back. Where the system cannot reserve (not Linux, NFS), nothing is done.
    """
    if sys.platform != "linux":
        return
    try:
        fcntl.ioctl(descriptor, _RESERVE, _SPACE.pack(0, os.SEEK_SET, 0, length, *[0] * 6))
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise


# Read a file that an agent left: from one descriptor, up to a limit, a regular file only.
#
# An agent, or a daemon that it left behind, may put a pipe in the place of a file, make a file of
# 15 TB, and write to it without end; none of these holds up its reader.


class LeftFile(NamedTuple):
    content: bytes
    size: int
    """How many bytes the file had when it was opened."""


def read_left_file(path: str, *, most_bytes: int, follows_links: bool = False) -> LeftFile:
    """Return at most *most_bytes* of the file *path*."""
    with closing(open_left_file(path, follows_links=follows_links)) as file:
        size = file.size()
        return LeftFile(file.read(0, min(size, most_bytes)), size)


def open_left_file(
    path: str, *, follows_links: bool = False, dir_fd: int | None = None
) -> OutputFile:
    return OutputFile(open_regular(path, follows_links=follows_links, dir_fd=dir_fd))


# Files below a directory: no path or link leads out of the directory, also no link made meanwhile.
#
# A path is resolved first, then walked part by part without following links.


_NAMES_OF_SECRETS = (
    *(".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks"),
    *("*.keystore", "id_rsa*", "id_dsa*", "id_ed25519*", "id_ecdsa*", "*.tfvars", ".htpasswd"),
    *(".dockercfg", ".netrc", ".pypirc", ".npmrc", ".git-credentials", ".pgpass", ".my.cnf"),
    *(".vault-token", "*.kdbx", "*.ppk", "credentials.json", "secrets.json"),
)
_FOLDERS_OF_SECRETS = (
    *("/.aws/", "/.azure/", "/.config/gcloud/", "/.config/gh/", "/.env.d/", "/.gnupg/", "/.ssh/"),
)
# Projects have other files in these folders.
_PATHS_OF_SECRETS = ("/.docker/config.json", "/.kube/config")
_EXAMPLES = (".example", ".sample", ".template", ".pub")


def is_secret_name(path: str) -> bool:
    """Check whether files of the name of *path* hold secrets: no record and no agent gets them."""
    path = f"/{path.lower()}"
    above, _, name = path.rpartition("/")
    if path.endswith(_PATHS_OF_SECRETS) or any(f in f"{above}/" for f in _FOLDERS_OF_SECRETS):
        return True
    return not name.endswith(_EXAMPLES) and any(
        fnmatchcase(name, pattern) for pattern in _NAMES_OF_SECRETS
    )


class BadFileBelow(AgentFailed):
    """The file cannot be used, or does not lie in the directory."""

    code = "bad-file-below"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}", path=path)
        self.problem = problem


def remove_below(root: str, path: str) -> None:
    """Remove the file *path* below *root*, if it is there, and make the folder that holds it."""
    with (
        _told(path),
        _open_folder(root, path, create=True) as (folder, name),
        suppress(FileNotFoundError),
    ):
        os.unlink(name, dir_fd=folder)


def read_below(
    root: str, path: str, *, most_bytes: int, follows_links: bool = False
) -> bytes | None:
    """Return the content of the file *path* below *root*, or None; BadFileBelow if it lies outside.

    The file may be a link only if *follows_links*, and must lie below *root* then too.
    """
    with _told(path):
        try:
            if follows_links:
                real = os.path.realpath(os.path.join(root, path))
                path = os.path.relpath(real, os.path.realpath(root))
            with _open_folder(root, path) as (folder, name):
                opened = open_left_file(name, dir_fd=folder)
        except FileNotFoundError:
            return None
        with closing(opened) as file:
            content = file.read(0, most_bytes + 1)
    if len(content) > most_bytes:
        raise BadFileBelow(path, f"is larger than {most_bytes // 1024:,} KiB")
    return content


def read_json_object(
    path: str,
    *,
    most_bytes: int,
    name: str,
    error: type[UwfError],
    may_be_empty: bool = False,
) -> dict[str, Any]:
    """Read a JSON object from *path*; *error* says what is wrong with *name*.

    If it *may_be_empty*, a file that is empty or missing is an empty object.
    """
    try:
        left = read_left_file(path, most_bytes=most_bytes, follows_links=True)
        text = left.content.decode("utf-8-sig")
        if left.size > most_bytes:
            raise error(f"{name} has more than {most_bytes:,} bytes")
        value = {} if may_be_empty and not text.strip() else parse_strict_json(text)
    except (OSError, UnicodeDecodeError) as problem:
        if may_be_empty and isinstance(problem, FileNotFoundError):
            return {}
        raise error(f"{name} cannot be read: {problem}") from problem
    except BadJson as problem:
        raise error(f"{name} is {problem.message}") from problem
    if not isinstance(value, dict):
        raise error(f"{name} is JSON, but not an object")
    return value


def read_json_below(
    root: str, path: str, *, most_bytes: int, clean: Callable[[bytes], bytes] = bytes
) -> tuple[Any, str] | None:
    """Return the JSON value in a file, *clean* of keys, with "" or why there is none.

    None: there is no such file.
    """
    try:
        content = read_below(root, path, most_bytes=most_bytes)
        if content is None:
            return None
        return parse_strict_json(clean(content).decode("utf-8-sig").strip()), ""
    except BadFileBelow as error:
        return None, error.problem
    except UnicodeDecodeError:
        return None, "is not UTF-8"
    except BadJson as error:
        return None, f"is {error.message}"


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kinds = {
            errno.ELOOP: "is a link",
            errno.EISDIR: "is a directory",
            errno.EINVAL: "is no ordinary file",
        }
        problem = kinds.get(error.errno or 0, f"cannot be used: {error.strerror}")
        raise BadFileBelow(path, problem) from None


@contextmanager
def _open_folder(root: str, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder that holds *path*; yield its descriptor, and the name of the file in it."""
    above, name = os.path.split(path)
    real_root = os.path.realpath(root)
    real = os.path.realpath(os.path.join(real_root, above))
    inside = os.path.relpath(os.path.join(real, name), real_root)
    problem = check_path_below(path) or check_path_below(inside)
    if problem is None and (is_secret_name(path) or is_secret_name(inside)):
        problem = "is a secret by its name"
    if problem is not None:
        raise BadFileBelow(path, problem)
    with walk_down(real_root, inside.split("/")[:-1], create=create) as folder:
        yield folder, name


@contextmanager
def walk_down(
    root: str,
    parts: Iterable[str],
    *,
    create: bool = False,
    check: Callable[[int], None] = lambda _folder: None,
) -> Iterator[int]:
    """Open the folder *parts* below *root*, following no link; yield its descriptor.

    *check* is called with the descriptor of each folder in which one may be created.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(root, flags)
    try:
        for part in parts:
            if create:
                check(folder)
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


# Find the files below a directory that a pattern names: ``*``, ``?``, ``[…]``, and ``**``.
#
# A pattern that is the path of a file means that file. ``*`` matches no leading dot, ``**`` any
# number of folders but no link. Names are compared in NFC, as some systems store them decomposed.

_WILD = frozenset("*?[")
MOST_NAMES = 100_000


def find_below(root: str, pattern: str, *, most_names: int = MOST_NAMES) -> list[str]:
    """Return the paths of files below *root* that *pattern* names, in order.

    Folders are left out, and secrets by name unless *pattern* is the name.

    ``**`` does not follow links; whether another link leads out is for the reader to check.
    BadFileBelow if more than *most_names* would have to be looked at.
    """
    problem = check_path_below(pattern)
    if problem is not None:
        raise BadFileBelow(pattern, problem)
    if os.path.isfile(os.path.join(root, pattern)):
        return [pattern]
    parts = [
        unicodedata.normalize("NFC", part) for part in pattern.split("/") if part not in ("", ".")
    ]
    left = [most_names]
    try:
        found = _find(root, "", parts, left)
        named = {path for path in found if not is_secret_name(path)}
        return sorted(path for path in named if os.path.isfile(os.path.join(root, path)))
    except OverflowError:
        problem = f"looks at more than {most_names:,} names"
        raise BadFileBelow(pattern, problem) from None


def _find(root: str, folder: str, parts: list[str], left: list[int]) -> Iterator[str]:
    part, rest = parts[0], parts[1:]
    is_deep = part == "**"
    if is_deep:
        # No folder at all, too.
        yield from _find(root, folder, rest or ["*"], left)
    for name, is_folder, is_link in _list(root, folder, left):
        path = f"{folder}/{name}" if folder else name
        if is_deep:
            if is_folder and not is_link and not name.startswith("."):
                yield from _find(root, path, parts, left)
        elif _matches(name, part):
            if not rest:
                yield path
            elif is_folder:
                yield from _find(root, path, rest, left)


def _list(root: str, folder: str, left: list[int]) -> Iterator[tuple[str, bool, bool]]:
    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            listed = [(each.name, _is_folder(each), each.is_symlink()) for each in entries]
    except OSError:
        return
    left[0] -= len(listed)
    if left[0] < 0:
        raise OverflowError("too many names")
    yield from (each for each in listed if each[0].lower() != ".git")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    # The entry itself would raise for a link that leads in a circle, or through a file.
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def _matches(name: str, part: str) -> bool:
    name = unicodedata.normalize("NFC", name)
    if _WILD.isdisjoint(part):
        return name == part
    if name.startswith(".") and not part.startswith("."):
        return False
    return fnmatchcase(name, part)
