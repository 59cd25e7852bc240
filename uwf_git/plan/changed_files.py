"""What git names changed or deleted since a time: in commits, the index and the work tree."""

import os
import unicodedata
from collections.abc import Mapping

from uwf_git.debug_log import debug
from uwf_git.git_environment import without_local_variables
from uwf_git.store.git.program import ProgramFailed, Ran, run_program

_TIMEOUT_S = 60.0

# The project's settings start no program, and its index is not written.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")
_DIFF = (
    "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv",
    "--ignore-submodules=none", "--relative",
)  # fmt: skip


def list_changed(folder: str, since_s: int, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the paths below *folder*, from it and in NFC, that git names changed since *since_s*.

    They differ from the newest commit of HEAD before that second; if there was none, everything in
    the index does. Empty if git is missing, or *folder* is in no work tree.
    """
    given = without_local_variables(environ) | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def run(*words: str) -> Ran:
        return run_program((*_GIT, *words), given, cwd=folder, timeout_s=_TIMEOUT_S)

    try:
        found = run("rev-list", "-1", f"--before={since_s - 1}", "HEAD")
        then = found.stdout.strip() if found.status == 0 else b""
        if not then:
            then = run("hash-object", "-t", "tree", "--stdin").stdout.strip()
        ran = run(*_DIFF, then.decode(), "--", ".")
    except ProgramFailed as error:
        debug("6W3N0QXJ", "git was not asked what changed", problem=error.message)
        return frozenset()
    if ran.status != 0:
        debug("4ZB8K1TD", "git names no changes", problem=ran.last_line)
        return frozenset()
    names = (os.fsdecode(name) for name in ran.stdout.split(b"\0") if name)
    return frozenset(unicodedata.normalize("NFC", name) for name in names)
