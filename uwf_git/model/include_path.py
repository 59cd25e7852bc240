"""Include paths: which file an `!include` means.

Owns: what a path in a workflow file may be. Knows nothing of: disks, YAML, who reads the file.
Always true: a path that was resolved leads below the folder of the workflow file by its words
alone, and can be an entry of a git tree beside the files that a version has anyway. (What a link
on the disk does is for whoever opens it.)
"""

import posixpath

from uwf_git.errors import Refused

MAX_PATH = 500

RESERVED = ("workflow.yaml", "head.json", "nodes")
"""What a version has at the top of its tree: FORMAT.md, "The tree of a workflow commit"."""


class CannotInclude(Refused):
    """A file that is to be included cannot be; ``problem`` says why, without saying where."""

    code = "cannot-include"

    def __init__(self, problem: str) -> None:
        super().__init__(f"it cannot be included: {problem}", problem=problem)
        self.problem = problem


def resolve_include(text: str, *, inside: str) -> str:
    """Give the path, from the workflow file's folder, of what *text* means in the file *inside*.

    *inside* is such a path itself: paths are relative to the file that they stand in.

    Raises:
        CannotInclude: it is no path of a file below that folder.
    """
    if not text:
        raise CannotInclude("it names no file")
    if len(text) > MAX_PATH or not text.isprintable():
        raise CannotInclude("a path is one line of at most 500 printable characters")
    if text.startswith(("/", "~")) or text[1:2] == ":":
        raise CannotInclude("a path is relative to the file that it stands in, never absolute")
    if "\\" in text:
        raise CannotInclude("write / between a folder and what is in it")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(inside), text))
    if path == ".." or path.startswith("../"):
        raise CannotInclude("it is not below the folder of the workflow file")
    if path == "." or text.endswith("/"):
        raise CannotInclude("it is a folder, not a file")
    _check_entries(path)
    return path


def _check_entries(path: str) -> None:
    parts = path.split("/")
    if parts[0].casefold() in RESERVED:
        raise CannotInclude(f"{parts[0]} is what a version keeps of its own; rename it")
    # git refuses commits with .git in them, in any spelling that some disk takes for it.
    odd = [part for part in parts if part.casefold().startswith((".git", "git~"))]
    if odd:
        raise CannotInclude(f"git keeps no file below the name {odd[0]}")
    if any(len(part.encode()) > 255 for part in parts) or len(path) > MAX_PATH:  # noqa: PLR2004 (the limit of every file system)
        raise CannotInclude("the path is too long")
