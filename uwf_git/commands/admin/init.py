"""`uwf init`: make a git repository a store.

An existing repository keeps all it has, and gets the setting ``uwf.store = true``, by which uwf
finds it from the folders below.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.discover import check_owner, default_path
from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, create_store, find_git_dir, open_store

_BEGINNINGS = frozenset({"config", "objects", "refs", "uwf"})


class Initialized(NamedTuple):
    """The outcome of an init."""

    store: Store
    created: bool
    """Whether there was no repository before."""

    is_adopted: bool = False
    """Whether a repository that was there became a store."""


def init_store(path: str | None, cwd: str, environ: Mapping[str, str]) -> Initialized:
    """Make the repository at *path* a store; create it if it does not exist.

    Without a path: the default store of the user. A *path* that leads to *cwd* or above it, such as
    ``.``, stands for the repository that encloses it, if there is one.

    Raises:
        Refused: uwf cannot read this kind of repository.
        Refused: the folder is no repository and holds other files.
        Refused: the enclosing repository belongs to another user.
    """
    target = os.path.join(cwd, os.path.expanduser(path)) if path else default_path(environ)
    git_dir = find_git_dir(target)
    if git_dir is None and path:
        git_dir = _find_above(os.path.realpath(target), os.path.realpath(cwd), environ)
    if git_dir is None:
        if os.path.isdir(target) and _has_other_files(target):
            raise Refused(
                f"{target} is not empty, and is no git repository",
                code="not-empty",
                hint="name a new folder: `uwf init store.git`; or make this one a repository "
                "first: "
                "`git init`",
                path=target,
            )
        store = create_store(target, environ=environ)
    else:
        store = open_store(git_dir, environ=environ)
    is_new = not store.config.get_flag("uwf.store", default=False)
    if is_new:
        set_config(os.path.join(store.path, "config"), "uwf.store", "true")
    return Initialized(store, created=git_dir is None, is_adopted=git_dir is not None and is_new)


def _find_above(target: str, cwd: str, environ: Mapping[str, str]) -> str | None:
    """Return the repository whose work tree holds *target*, if *cwd* is *target* or below it."""
    if os.path.commonpath([target, cwd]) != target:
        return None
    folder = target
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        # A bare repository has no work tree: it encloses nothing.
        if os.path.lexists(os.path.join(folder, ".git")):
            git_dir = find_git_dir(folder)
            if git_dir is not None:
                check_owner(folder, git_dir, environ)
                return git_dir
    return None


def _has_other_files(path: str) -> bool:
    """Check whether a folder holds more than a killed `uwf init` may have left."""
    return any(name not in _BEGINNINGS and name[:5] != ".tmp_" for name in os.listdir(path))
