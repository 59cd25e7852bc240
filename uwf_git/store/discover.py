"""Find the store: the named one, else the enclosing one, else the default one.

Named: --repo or $UWF_REPO. Enclosing: the nearest work tree whose repository's config has
``uwf.store = true``. Default: the path in the user's own git config, ``uwf.repo``, else
`~/.uwf/store.git`; the first use creates it.

A bare repository encloses nothing: its files can be part of any checkout (git-config(1),
safe.bareRepository). It must be named.
"""

import os
from collections.abc import Mapping

from uwf_git.errors import BadUsage, Refused
from uwf_git.project_paths import folders_around
from uwf_git.store.git.config import read_config_file
from uwf_git.store.git.scopes import read_user_config
from uwf_git.store.store import (
    NotAStore,
    Store,
    create_store,
    find_git_dir,
    find_tree_git_dir,
    is_git_dir,
    open_store,
)

DEFAULT_NAME = "uwf.repo"


def find_store(repo: str | None, cwd: str, environ: Mapping[str, str], *, create: bool) -> Store:
    """Open the store: *repo* if given, else the enclosing store, else the default store.

    With *create* a missing default store is created; a missing *repo* never is (NotAStore).
    """
    if repo:
        return open_store(os.path.join(cwd, os.path.expanduser(repo)), environ=environ)
    found = _find_tree(cwd)
    if found is not None:
        folder, git_dir = found
        check_owner(folder, git_dir, environ)
        return open_store(git_dir, environ=environ)
    path = default_path(environ)
    if find_git_dir(path) is not None:
        return open_store(path, environ=environ)
    if not create:
        raise NotAStore(path, "does not exist yet")
    return create_store(path, environ=environ)


def check_owner(folder: str, git_dir: str, environ: Mapping[str, str]) -> None:
    """Refuse the repository *git_dir* of the work tree at *folder* if another user made it.

    As git does: its config names programs. Source: git-config(1), safe.directory.
    """
    places = (git_dir, os.path.join(folder, ".git"))
    if all(os.lstat(place).st_uid == os.geteuid() for place in places):
        return
    safe = read_user_config(environ).get_all("safe.directory")
    if not {"*", git_dir, os.path.dirname(git_dir)} & set(safe):
        raise Refused(
            f"{git_dir}, which encloses this directory, belongs to another user",
            code="foreign-repository",
            hint=f"if you trust its agents: `uwf --repo {git_dir} …`, or git's safe.directory",
            path=git_dir,
        )


def default_path(environ: Mapping[str, str]) -> str:
    """Return the path of the default store; one in the user's config begins in their home."""
    home = environ.get("HOME")
    named = read_user_config(environ).get(DEFAULT_NAME)
    if named and os.path.isabs(named):
        return named
    if not home:
        raise BadUsage(
            "there is no $HOME to keep the default store in",
            code="no-home",
            hint="name a store: `uwf --repo PATH …` or $UWF_REPO",
        )
    return os.path.join(home, (named or ".uwf/store.git").removeprefix("~/"))


def find_bare_around(cwd: str) -> str | None:
    """Return the nearest bare repository that *cwd* lies in, without reading from it, or None."""
    for folder in folders_around(cwd):
        if os.path.basename(folder) == ".git" or os.path.lexists(os.path.join(folder, ".git")):
            return None
        if is_git_dir(folder):
            return folder
    return None


def _find_tree(cwd: str) -> tuple[str, str] | None:
    for folder in folders_around(cwd):
        git_dir = find_tree_git_dir(folder)
        if git_dir is not None:
            config = read_config_file(os.path.join(git_dir, "config"))
            if config.get_flag("uwf.store", default=False):
                return folder, git_dir
    return None
