"""`uwf init`: a git directory becomes a store.

Owns: what making one means. Always true: a repository that is there keeps everything it has;
it gets the setting ``uwf.store = true``, by which it is found from its folders below.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.discover import default_path
from uwf_git.store.git_config import set_config
from uwf_git.store.store import Store, create_store, find_git_dir, open_store

_BEGINNINGS = frozenset({"config", "objects", "refs", "uwf"})


class NotEmpty(Refused):
    """A bare repository would be scattered among the files of a folder."""

    code = "not-empty"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is not empty, and is no git repository",
            hint="name a folder that is not there yet: `uwf init store.git`; or make this one a "
            "repository first: `git init`",
            path=path,
        )


class Initialized(NamedTuple):
    """A store that is ready."""

    store: Store
    created: bool
    """Whether there was no repository before."""


def init_store(path: str | None, cwd: str, environ: Mapping[str, str]) -> Initialized:
    """Make the repository at *path* a store, making it first if it is not there.

    Without a path: the default store of the user.

    Raises:
        UnsupportedRepository: the repository is of a kind that we cannot read.
        NotEmpty: the folder is no repository and holds other files.
        OSError: the machine would not let it be made.
    """
    target = os.path.join(cwd, os.path.expanduser(path)) if path else default_path(environ)
    git_dir = find_git_dir(target)
    if git_dir is None:
        if os.path.isdir(target) and _has_other_files(target):
            raise NotEmpty(target)
        store = create_store(target, environ=environ)
    else:
        store = open_store(git_dir, environ=environ)
    if not store.config.get_flag("uwf.store", default=False):
        set_config(os.path.join(store.path, "config"), "uwf.store", "true")
    return Initialized(store, created=git_dir is None)


def _has_other_files(path: str) -> bool:
    """Tell whether a folder holds more than a killed `uwf init` may have left in it."""
    return any(name not in _BEGINNINGS and name[:5] != ".tmp_" for name in os.listdir(path))
