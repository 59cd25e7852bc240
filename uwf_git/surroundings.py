"""What is around a process: modules, the locale, git's variables, processes, folders, files."""

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple


class Lazy(ModuleType):
    """A module that is imported when one of its names is first asked for: start-up is felt."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def load(module: ModuleType) -> None:
    """Import a `Lazy` module now: before a fork, say, whose limits are for what follows."""
    import_module(module.__name__)


if TYPE_CHECKING:
    import pathlib
else:
    pathlib = Lazy("pathlib")  # 4 ms


def read_clock_ms() -> int:
    """Return the time in milliseconds since 1970; 0 before: no node or commit can be older."""
    return max(0, time.time_ns() // 1_000_000)


def speak_utf8() -> None:
    """Start this program again in UTF-8 mode if its locale encodes words and paths otherwise."""
    if sys.executable and sys.getfilesystemencoding() != "utf-8":
        words: list[str] | list[bytes] = sys.orig_argv[1:]
        # As they were typed: not every codec gives back what the C library has read.
        with suppress(OSError), open("/proc/self/cmdline", "rb") as file:
            typed = file.read().split(b"\0")
            words = typed[-len(sys.orig_argv) : -1] if len(typed) > len(sys.orig_argv) else words
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *words])  # noqa: S606 (this program again)


# The variables that tie a git process to one repository.
#
# A hook of git has them set, and so has a shell in which somebody exported them. A git process that
# works on another repository must not see them.

CONFIG_VARIABLES = frozenset({"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"})
"""The variables that hold settings: `git -c NAME=VALUE` sets the second."""

LOCAL_VARIABLES = CONFIG_VARIABLES | {
    # `git rev-parse --local-env-vars`, of all versions of git.
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    # Not in that list: they change which refs are seen, and forbid to change any.
    "GIT_NAMESPACE",
    "GIT_QUARANTINE_PATH",
}


UNSET_LOCAL_VARIABLES = f"unset {' '.join(sorted(LOCAL_VARIABLES))}"
"""What a shell does before it runs such a git process, where no environment can be passed."""


def without_local_variables(
    environ: Mapping[str, str], *, keep_settings: bool = False
) -> dict[str, str]:
    """Return *environ* for a git process that is told which repository it works on.

    With *keep_settings* the settings of the environment hold for it too: it answers for us.
    """
    left_out = LOCAL_VARIABLES - CONFIG_VARIABLES if keep_settings else LOCAL_VARIABLES
    return {name: value for name, value in environ.items() if name not in left_out}


# Processes as /proc shows them. Source: proc(5), /proc/<pid>/stat.

_ENDED = ("Z", "X", "x")
_STOPPED = ("T", "t")


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    start: int
    """Clock ticks from boot to its start; with the pid, it names one process for ever."""

    has_ended: bool
    """It is dead or a zombie: it runs no more and holds no lock."""

    is_stopped: bool
    """It was stopped (SIGSTOP, Ctrl-Z): it keeps its locks, and SIGTERM does not reach it."""


def read_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return None
    # Field 2 is the program's name in parentheses, which may hold blanks and parentheses.
    fields = stat.rpartition(")")[2].split()
    parent, group, start = int(fields[1]), int(fields[2]), int(fields[19])
    return Process(pid, parent, group, start, fields[0] in _ENDED, fields[0] in _STOPPED)


def read_name(pid: int) -> str:
    """Return the name of the program of *pid*, of 15 characters at most; "?" if it has gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return "?"


def read_environ(pid: int) -> dict[str, str]:
    """Return the environment that *pid* began with; empty if it has gone or is another user's."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            entries = (entry.partition("=") for entry in file.read().split("\0"))
    except OSError:
        return {}
    return {name: value for name, _, value in entries}


def read_process_start(pid: int) -> int | None:
    """Return the start of the process *pid* in clock ticks since boot.

    None if there is no such process, it is a zombie, or there is no /proc.
    """
    process = read_process(pid)
    return None if process is None or process.has_ended else process.start


def list_processes() -> list[Process] | None:
    try:
        names = os.listdir("/proc")
    except FileNotFoundError:
        return None
    found = [read_process(int(name)) for name in names if name.isdecimal()]
    # Some may have ended meanwhile; our own is missing only where /proc has another format.
    return [process for process in found if process is not None] or None


def read_boot_id() -> str:
    """Return what names this run of the machine, from boot to boot; empty without /proc."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def find_boot_time_s() -> int | None:
    """Return when the machine booted, in seconds since 1970; None if there is no /proc."""
    try:
        with open("/proc/stat", "rb") as file:
            return next((int(line.split()[1]) for line in file if line.startswith(b"btime ")), None)
    except OSError:
        return None


# Paths of a project's own files: in the work directory, then beside `.workflows/` above it.


def find_above(words: Sequence[str], *, workdir: str) -> tuple[str, ...]:
    """Return *words* with the paths of the project's own files as they are from *workdir*.

    A relative path that names nothing in *workdir*, but a file in a folder above it that has a
    `.workflows/`, becomes absolute: the agents of a project are found from all of its folders.
    Nothing above the root of the git repository counts.
    """
    folders = _project_folders(pathlib.Path(workdir)) if any(map(_is_relative_path, words)) else []
    return tuple(_from_above(word, workdir, folders) for word in words)


def _is_relative_path(word: str) -> bool:
    return "/" in word and word[0] not in "/-" and "\0" not in word


def _project_folders(workdir: "pathlib.Path") -> "list[pathlib.Path]":
    """Return *workdir* and the folders above it, those that have workflows, nearest first."""
    found: list[pathlib.Path] = []
    for folder in map(pathlib.Path, folders_around(str(workdir))):
        if (folder / ".workflows").is_dir():
            found.append(folder)
        if os.path.lexists(folder / ".git"):
            return found
    # Outside of a repository a project is one folder.
    return []


def _from_above(word: str, workdir: str, folders: "Sequence[pathlib.Path]") -> str:
    if not _is_relative_path(word) or os.path.lexists(os.path.join(workdir, word)):
        return word
    # A word may be a whole script, longer than a path may be: that is no error of `isfile`.
    return next((str(each / word) for each in folders if os.path.isfile(each / word)), word)


def is_in_repository(folder: str) -> bool:
    """Check whether a repository of git may be around *folder*, without asking git."""
    return any(
        os.path.lexists(os.path.join(each, ".git"))
        for each in folders_around(os.path.realpath(folder))
    )


def folders_around(path: str) -> Iterator[str]:
    """Yield the folder *path*, then the folders around it, nearest first."""
    folder = os.path.abspath(path)
    yield folder
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        yield folder


# Files that others may have put there, or change while they are read.


def open_regular(path: str, *, follows_links: bool = False, dir_fd: int | None = None) -> int:
    """Open the file *path* for reading; a symbolic link only if *follows_links*."""
    # O_NONBLOCK: a pipe without a writer must not block.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW)
    descriptor = os.open(path, flags, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    return descriptor
