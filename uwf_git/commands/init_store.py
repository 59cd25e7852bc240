"""`uwf init`: a git directory becomes a store.

Owns: what making one means. Always true: a repository that is there keeps everything it has;
it gets the setting ``uwf.store = true``, by which it is found from its folders below.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.store.discover import default_path
from uwf_git.store.git_config import set_config
from uwf_git.store.store import Store, create_store, find_git_dir, open_store


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
        OSError: the machine would not let it be made.
    """
    target = os.path.join(cwd, os.path.expanduser(path)) if path else default_path(environ)
    git_dir = find_git_dir(target)
    if git_dir is None:
        store = create_store(target, environ=environ)
    else:
        store = open_store(git_dir, environ=environ)
    if not store.config.get_flag("uwf.store", default=False):
        set_config(os.path.join(store.path, "config"), "uwf.store", "true")
    return Initialized(store, created=git_dir is None)
