"""Paths of a project's own files: in the work directory, then beside `.workflows/` above it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path


def find_above(words: Sequence[str], *, workdir: str) -> tuple[str, ...]:
    """Return *words* with the paths of the project's own files as they are from *workdir*.

    A relative path that names nothing in *workdir*, but a file in a folder above it that has a
    `.workflows/`, becomes absolute: the agents of a project are found from all of its folders.
    Nothing above the root of the git repository counts.
    """
    folders = _project_folders(Path(workdir)) if any(map(_is_relative_path, words)) else []
    return tuple(_from_above(word, workdir, folders) for word in words)


def _is_relative_path(word: str) -> bool:
    return "/" in word and word[0] not in "/-" and "\0" not in word


def _project_folders(workdir: Path) -> list[Path]:
    """Return *workdir* and the folders above it, those that have workflows, nearest first."""
    found: list[Path] = []
    for folder in map(Path, folders_around(str(workdir))):
        if (folder / ".workflows").is_dir():
            found.append(folder)
        if os.path.lexists(folder / ".git"):
            return found
    # Outside of a repository a project is one folder.
    return []


def _from_above(word: str, workdir: str, folders: Sequence[Path]) -> str:
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
