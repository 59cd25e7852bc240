"""Include paths: which file an `!include` means.

A resolved path is below the folder of the workflow file, and can be an entry of a git tree.
Symbolic links are checked where the file is opened.
"""

import posixpath

from uwf_git.errors import Refused

MAX_PATH = 500

RESERVED = ("workflow.yaml", "head.json", "nodes")
"""The entries of a version's own tree: FORMAT.md, "The tree of a workflow commit"."""


class CannotInclude(Refused):
    """A file cannot be included; ``problem`` says why, without the place."""

    code = "cannot-include"

    def __init__(self, problem: str) -> None:
        super().__init__(f"it cannot be included: {problem}", problem=problem)
        self.problem = problem


def resolve_include(text: str, *, inside: str) -> str:
    """Return the path, from the workflow file's folder, that *text* means in the file *inside*.

    *inside* is such a path itself: paths are relative to the file that contains them.

    Raises:
        CannotInclude: it is not the path of a file below that folder.
    """
    if not text:
        raise CannotInclude("it names no file")
    if len(text) > MAX_PATH or not text.isprintable():
        raise CannotInclude("a path is one line of at most 500 printable characters")
    if text.startswith(("/", "~")) or text[1:2] == ":":
        raise CannotInclude("a path is relative to the file that contains it, never absolute")
    if "\\" in text:
        raise CannotInclude("use / between the names of a path")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(inside), text))
    if path == ".." or path.startswith("../"):
        raise CannotInclude("it is outside the folder of the workflow file")
    if path == "." or text.endswith("/"):
        raise CannotInclude("it is a folder, not a file")
    _check_entries(path)
    return path


def _check_entries(path: str) -> None:
    parts = path.split("/")
    if parts[0].casefold() in RESERVED:
        raise CannotInclude(f"{parts[0]} is a reserved name; rename it")
    # git refuses commits with .git in them, in any spelling that some file system takes for it.
    odd = [part for part in parts if part.casefold().startswith((".git", "git~"))]
    if odd:
        raise CannotInclude(f"git refuses files below the name {odd[0]}")
    if any(len(part.encode()) > 255 for part in parts) or len(path) > MAX_PATH:  # noqa: PLR2004 (the limit of every file system)
        raise CannotInclude("the path is too long")
