"""Find the files below a directory that a pattern names: ``*``, ``?``, ``[…]``, and ``**``.

A pattern that is the path of a file means that file. ``*`` matches no leading dot, ``**`` any
number of folders but no link. Names are compared in NFC, as some systems store them decomposed.
"""

import os
import unicodedata
from collections.abc import Iterator
from fnmatch import fnmatchcase

from uwf_git.agents.file_below import BadFileBelow
from uwf_git.model.path_below import check_path_below

_WILD = frozenset("*?[")
_ANY_FOLDERS = "**"
MOST_NAMES = 100_000


def find_below(root: str, pattern: str, *, most_names: int = MOST_NAMES) -> list[str]:
    """Return the paths of files below *root* that *pattern* names, in order; a folder is none.

    Links are followed but by ``**``; whether one leads out is for the reader to check. At most
    *most_names* are looked at.

    Raises:
        BadFileBelow: it is no such pattern, or too many names would have to be looked at.
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
        return sorted({path for path in found if os.path.isfile(os.path.join(root, path))})
    except _TooMany:
        problem = f"looks at more than {most_names:,} names"
        raise BadFileBelow(pattern, problem) from None


class _TooMany(Exception):
    """A pattern goes through too many folders."""


def _find(root: str, folder: str, parts: list[str], left: list[int]) -> Iterator[str]:
    part, rest = parts[0], parts[1:]
    is_deep = part == _ANY_FOLDERS
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
            listed = [(each.name, each.is_dir(), each.is_symlink()) for each in entries]
    except OSError:
        return
    left[0] -= len(listed)
    if left[0] < 0:
        raise _TooMany
    yield from (each for each in listed if each[0].lower() != ".git")


def _matches(name: str, part: str) -> bool:
    name = unicodedata.normalize("NFC", name)
    if _WILD.isdisjoint(part):
        return name == part
    if name.startswith(".") and not part.startswith("."):
        return False
    return fnmatchcase(name, part)
