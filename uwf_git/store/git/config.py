"""Read and write a git config file as git does: its includes, and which value counts.

Conditional includes (``includeIf``) are not followed: scopes.py asks git about them. A file is
changed under git's own lock.
Source: git-config(1), "FILES" and "Includes".
"""

import os
import re
import stat
from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from uwf_git.errors import BadUsage, Refused
from uwf_git.store.disk.durable import sync_directories
from uwf_git.store.disk.file_memory import FileMemory
from uwf_git.store.disk.lockfile import hold_ref_lock
from uwf_git.store.git.config_text import (
    ConfigItem,
    edit_config,
    normal_name,
    remove_values,
    scan_config,
)

__all__ = [
    "BadConfig",
    "GitConfig",
    "UnfitValue",
    "add_config",
    "normal_name",
    "read_config_file",
    "remove_config",
    "rewrite_config",
    "set_config",
]

_DEEPEST_INCLUDE = 10
_MOST_FILES = 1_000
_MOST_BYTES = 8 * 1024 * 1024
_TRUE = {"true", "yes", "on"}
_FALSE = {"false", "no", "off", ""}
_NUMBER = re.compile(r"[-+]?[0-9]{1,18}[kmg]?", re.IGNORECASE)


class BadConfig(Refused):
    """A git config file cannot be parsed."""

    code = "bad-config"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path} is not a git config file: {problem}",
            # git itself waits for ever for a pipe.
            hint=f"see what git says: `git config --file {path} --list`"
            if os.path.isfile(path)
            else "find the include.path that names it with `git config --no-includes --list`",
            path=path,
        )


class UnfitValue(BadUsage):
    """No git config file can hold the value."""

    code = "unfit-value"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the value of {name} has a NUL, which git config cannot hold", setting=name
        )


class GitConfig(NamedTuple):
    """Settings by full name (`section.subsection.name`), each with all its values in order."""

    values: dict[str, list[str]]

    def get(self, name: str) -> str | None:
        """Return the last value of *name*, which is the one that counts, or None."""
        found = self.values.get(normal_name(name))
        return found[-1] if found else None

    def get_all(self, name: str) -> list[str]:
        """Return every value of *name*, in order."""
        return self.values.get(normal_name(name), [])

    def get_flag(self, name: str, *, default: bool) -> bool:
        """Return *name* read as git reads a boolean; *default* if it is not one."""
        value = self.get(name)
        if value is None:
            return default
        word = value.lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        return word.strip("+-0kmg") != "" if _NUMBER.fullmatch(word) else default

    def over(self, other: "GitConfig") -> "GitConfig":
        """Return these settings on top of *other*: their values come last, so they count."""
        merged = {name: list(values) for name, values in other.values.items()}
        for name, values in self.values.items():
            merged.setdefault(name, []).extend(values)
        return GitConfig(merged)


def read_config_file(path: str) -> GitConfig:
    """Read a git config file with what it includes; a missing one is empty.

    Raises:
        BadConfig: it cannot be parsed, or a file that it includes cannot be read.
    """
    values: dict[str, list[str]] = {}
    for item in _read_items(path, depth=0, read=[]):
        values.setdefault(item.name, []).append("true" if item.value is None else item.value)
    return GitConfig(values)


def _read_items(path: str, *, depth: int, read: list[int]) -> Iterator[ConfigItem]:
    """Yield the items of a file and its includes; *read* has the sizes of the files so far."""
    if depth > _DEEPEST_INCLUDE:
        raise BadConfig(path, "it is included too deeply, or by itself")
    # Ten levels of files that each include the next one twice are a thousand files.
    if len(read) == _MOST_FILES or sum(read) > _MOST_BYTES:
        raise BadConfig(path, "too much is included before it")
    try:
        file = _FILES.read(path, _read_file)
        read.append(file.length)
        for item in file.settings:
            yield item
            if item.name == "include.path" and item.value:
                included = os.path.join(os.path.dirname(path), os.path.expanduser(item.value))
                yield from _read_items(included, depth=depth + 1, read=read)
    except ValueError as error:
        raise BadConfig(path, str(error)) from error


class _ConfigFile(NamedTuple):
    """One config file, without what it includes."""

    length: int
    settings: tuple[ConfigItem, ...]


_FILES: FileMemory[_ConfigFile] = FileMemory(64)


def _read_file(path: str) -> _ConfigFile:
    """Return the settings in a file.

    Raises:
        ValueError: it cannot be a config file, or git could not parse it.
    """
    text = _read_text(path)
    settings = (item for item in scan_config(text) if item.kind == "setting")
    return _ConfigFile(len(text), tuple(settings))


def _read_text(path: str) -> str:
    """Return the text of a config file; "" if there is none.

    Raises:
        ValueError: it cannot be a config file.
    """
    try:
        # Without O_NONBLOCK a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from error
    try:
        # /dev/null, with which people switch a file off, ends at once; /dev/zero does not.
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if not is_file and not os.path.samefile(descriptor, os.devnull):
            raise ValueError("it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES // 1024**2} MB")
    return content.decode(errors="surrogateescape")


def set_config(path: str, name: str, value: str) -> None:
    """Set *name* to *value* in the file at *path*, in place of its other values.

    Raises:
        BadConfig: it cannot be parsed.
        UnfitValue: no config file can hold the value.
        RefLocked: git keeps its lock on the file.
    """
    _edit(path, name, value, keep=False)


def add_config(path: str, name: str, value: str) -> None:
    """Add one more *value* of *name* to the file at *path*; raises as ``set_config`` does."""
    _edit(path, name, value, keep=True)


def remove_config(path: str, name: str, values: Container[str]) -> None:
    """Remove those *values* of *name* from the file at *path*, but not from included files."""
    rewrite_config(path, lambda text: remove_values(text, name, values))


def _edit(path: str, name: str, value: str, *, keep: bool) -> None:
    if "\0" in value:
        raise UnfitValue(name)
    rewrite_config(path, lambda text: edit_config(text, name, value, keep=keep))


def rewrite_config(path: str, change: Callable[[str], str]) -> None:
    """Replace the text of the file at *path* by what *change* returns for it, atomically.

    Raises:
        BadConfig: *change* raised a ValueError, as it cannot parse the text.
        RefLocked: git keeps its lock on the file.
    """
    directory, file_name = os.path.split(path)
    os.makedirs(directory, exist_ok=True)
    # The markers of this lock are in <directory>/uwf/ref-locks, as those of refs.
    with hold_ref_lock(directory, file_name, b"", durable=False) as lock:
        try:
            text = change(_read_text(path))
        except ValueError as error:
            raise BadConfig(path, str(error)) from error
        with open(lock, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _keep_mode(path, lock)
        os.replace(lock, path)
        sync_directories([directory])


def _keep_mode(path: str, lock: str) -> None:
    try:
        os.chmod(lock, stat.S_IMODE(os.stat(path).st_mode))
    except FileNotFoundError:
        return
