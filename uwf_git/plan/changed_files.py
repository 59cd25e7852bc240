"""What git names changed or deleted since a time: in commits, the index and the work tree."""

import os
import unicodedata
from collections.abc import Mapping

from uwf_git.debug_log import debug
from uwf_git.errors import UwfError
from uwf_git.store.git.fenced import (
    Kept,
    find_place,
    list_changed_inside,
    read_settings,
    run_fenced,
)
from uwf_git.store.git.program import ProgramFailed, Ran
from uwf_git.store.threads.local_files import SETTINGS
from uwf_git.store.user_files import find_user_file

_TIMEOUT_S = 60.0

_DIFF = (
    "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv",
    "--ignore-submodules=dirty", "--relative",
)  # fmt: skip


def list_changed(folder: str, since_s: int, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the paths below *folder*, from it and in NFC, that git names changed since *since_s*.

    They differ from the newest commit of HEAD before that second; if there was none, everything in
    the index does. Empty if git is missing, or *folder* is in no work tree.
    """
    try:
        names = _list_changed(folder, since_s, environ)
    except (UwfError, OSError) as error:
        debug("6W3N0QXJ", "git names no changes", problem=str(error))
        return frozenset()
    return frozenset(unicodedata.normalize("NFC", name) for name in names)


def _list_changed(folder: str, since_s: int, environ: Mapping[str, str]) -> list[str]:
    place = find_place(environ, folder, _find_settings(environ))
    if isinstance(place, str):
        raise ProgramFailed("git", f"finds no work tree: {place}")

    def run(*words: str) -> Ran:
        return run_fenced(environ, place, *words, cwd=folder, timeout_s=_TIMEOUT_S)

    found = run("rev-list", "-1", f"--before={since_s - 1}", "HEAD")
    then = found.stdout.strip() if found.status == 0 else b""
    if not then:
        then = run("hash-object", "-t", "tree", "--stdin").stdout.strip()
    ran = run(*_DIFF, then.decode(), "--", ".")
    if ran.status != 0:
        raise ProgramFailed("git", f"diff failed: {ran.last_line}")
    names = [os.fsdecode(name) for name in ran.stdout.split(b"\0") if name]
    return [*names, *list_changed_inside(environ, place, cwd=folder)]


def _find_settings(environ: Mapping[str, str]) -> Kept:
    """Return the settings of git that are kept for the thread whose turn this is."""
    store, thread = environ.get("UWF_REPO"), environ.get("UWF_THREAD_ID")
    if not store or not thread:
        return Kept()
    return read_settings(find_user_file(store, environ, os.path.join(SETTINGS, thread)))
