"""Find the store: the named one, else the enclosing one, else the default one (DESIGN 2).

Named: --repo or $UWF_REPO. Enclosing: the nearest repository whose config has ``uwf.store = true``.
Default: `~/.uwf/store.git`, which the first use creates.
"""

import os
from collections.abc import Mapping

from uwf_git.errors import BadUsage, Refused
from uwf_git.store.git.config import read_config_file
from uwf_git.store.git.scopes import read_user_config
from uwf_git.store.store import NotAStore, Store, create_store, find_git_dir, open_store


class NoHome(BadUsage):
    """There is no home directory for the default store."""

    code = "no-home"

    def __init__(self) -> None:
        super().__init__(
            "there is no $HOME to keep the default store in",
            hint="name a store: `uwf --repo PATH …` or $UWF_REPO",
        )


class ForeignRepository(Refused):
    """The enclosing repository belongs to another user."""

    code = "foreign-repository"

    def __init__(self, git_dir: str) -> None:
        super().__init__(
            f"{git_dir}, which encloses this directory, belongs to another user",
            hint=f"if you trust its agents: `uwf --repo {git_dir} …`, or git's safe.directory",
            path=git_dir,
        )


def find_store(repo: str | None, cwd: str, environ: Mapping[str, str], *, create: bool) -> Store:
    """Open the store: *repo* if given, else the enclosing one, else the default one.

    With *create* a missing default store is created; a missing *repo* never is.

    Raises:
        NotAStore: there is no git directory at the path.
        UnsupportedRepository: uwf cannot read its format.
        ForeignRepository: it is the enclosing one, and belongs to another user.
    """
    if repo:
        return open_store(os.path.join(cwd, os.path.expanduser(repo)), environ=environ)
    enclosing = find_enclosing(cwd)
    if enclosing is not None:
        check_owner(enclosing, environ)
        return open_store(enclosing, environ=environ)
    path = default_path(environ)
    if find_git_dir(path) is not None:
        return open_store(path, environ=environ)
    if not create:
        raise NotAStore(path, "does not exist yet")
    return create_store(path, environ=environ)


def check_owner(git_dir: str, environ: Mapping[str, str]) -> None:
    """Refuse an enclosing repository of another user, as git does.

    Its config names the commands that run as agents. Source: git-config(1), safe.directory.

    Raises:
        ForeignRepository: it belongs to another user, and git's settings do not allow that.
    """
    if os.stat(git_dir).st_uid == os.geteuid():
        return
    safe = read_user_config(environ).get_all("safe.directory")
    if not {"*", git_dir, os.path.dirname(git_dir)} & set(safe):
        raise ForeignRepository(git_dir)


def default_path(environ: Mapping[str, str]) -> str:
    """Return the path of the default store.

    Raises:
        NoHome: $HOME is not set.
    """
    home = environ.get("HOME")
    if not home:
        raise NoHome
    return os.path.join(home, ".uwf", "store.git")


def find_enclosing(cwd: str) -> str | None:
    """Return the nearest enclosing repository with ``uwf.store = true``, or None."""
    directory = os.path.abspath(cwd)
    while True:
        git_dir = find_git_dir(directory)
        if git_dir is not None:
            config = read_config_file(os.path.join(git_dir, "config"))
            if config.get_flag("uwf.store", default=False):
                return git_dir
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
