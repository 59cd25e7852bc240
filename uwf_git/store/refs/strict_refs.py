"""Strict refs: what `git fsck` says of HEAD, of the files of refs, and of packed-refs.

Source: fsck_head_link in git's builtin/fsck.c, refs/packed-backend.c; `git refs verify`.
"""

import os
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from dulwich.refs import Ref, check_ref_format

from uwf_git.store.disk.durable import read_if_there
from uwf_git.store.disk.locks import PACKED_REFS
from uwf_git.store.oid import _OID, Oid
from uwf_git.store.refs.refs import (
    PACKED_HINT,
    BadPackedRefs,
    parse_packed_refs,
    read_header,
    read_packed_refs,
)

_HEADER = re.compile(rb"# pack-refs with:(?: [a-z-]+)* ?\n")
_SYMBOLIC = re.compile(rb"ref:\s*(refs/[^\s]+)\s*")
_BRANCHES = b"refs/heads/"


class BadRefFile(NamedTuple):
    """A file of refs that git rejects, or would not have written."""

    name: str

    problem: str
    hint: str


def check_head(git_dir: str) -> Iterator[BadRefFile]:
    """Check that HEAD names a branch or a commit, as git takes no other directory."""
    content = read_if_there(os.path.join(git_dir, "HEAD"))
    target = _SYMBOLIC.fullmatch(content)
    if target is not None and target[1].startswith(_BRANCHES) and check_ref_format(Ref(target[1])):
        return
    if _OID.fullmatch(content.rstrip()):
        return
    problem = f"names no branch and no commit: {content[:60]!r}"
    path = shlex.quote(os.path.join(git_dir, "HEAD"))
    hint = f"make it name the branch that it named: echo 'ref: refs/heads/main' > {path}"
    yield BadRefFile("HEAD", problem, hint)


def check_loose_refs(git_dir: str) -> Iterator[tuple[str, Oid | BadRefFile]]:
    """Yield each file below refs/ by name, with its value or its problem, but no symbolic refs."""
    for folder, folders, files in os.walk(os.path.join(git_dir, "refs")):
        folders.sort()
        for file in sorted(files):
            name = os.path.relpath(os.path.join(folder, file), git_dir)
            if file.endswith(".lock"):
                continue
            if not os.path.isfile(os.path.join(folder, file)):
                if os.path.lexists(os.path.join(folder, file)):
                    # A pipe would never end; a link leads nowhere.
                    yield name, BadRefFile(name, "is no file", "move it out of the store")
                continue
            try:
                with open(os.path.join(git_dir, name), "rb") as opened:
                    content = opened.read(1000).rstrip()
            except FileNotFoundError:
                continue  # deleted or packed since
            if _OID.fullmatch(content):
                yield name, Oid(content.decode())
            elif _SYMBOLIC.fullmatch(content) is None:
                hint = f"copy that file away and delete it; `git log {name}` shows what is left"
                yield name, BadRefFile(name, "does not hold an object id", hint)


def check_packed_refs(git_dir: str) -> Iterator[BadRefFile]:
    """Check that git would have written packed-refs so: no line lost, no name out of order."""
    problem = _find_packed_problem(git_dir)
    if problem is not None:
        yield BadRefFile(PACKED_REFS, problem, PACKED_HINT)


def _find_packed_problem(git_dir: str) -> str | None:
    path = os.path.join(git_dir, PACKED_REFS)
    content = read_packed_refs(git_dir)
    header = read_header(content)
    if not content:
        return "is empty, and git writes no empty one" if os.path.lexists(path) else None
    if content.startswith(b"#") and _HEADER.fullmatch(header) is None:
        return f"has no header that git would write: {content[:60]!r}"
    try:
        names = [row.name for row in parse_packed_refs(path, content)]
    except BadPackedRefs as error:
        return error.problem
    is_sorted = b" sorted" in header
    for before, name in zip([b"", *names], names, strict=False):
        if not check_ref_format(Ref(name)):
            return f"has a name that git refuses: {name[:100]!r}"
        if is_sorted and name <= before:
            return f"says that it is sorted, and has {name[:100]!r} after {before[:100]!r}"
    return None
