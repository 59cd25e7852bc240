"""`uwf init`: make a git repository a store, or a bare repository to push to."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.git.config import (
    NAME,
    GitConfig,
    add_config,
    read_config_file,
    set_config,
    share_folder,
    shared_umask,
)
from uwf_git.store.git.hook_files import PINNED, check_hooks, install_hooks
from uwf_git.store.store import (
    Store,
    check_owner,
    create_store,
    default_path,
    find_git_dir,
    is_unfinished,
    open_store,
    own_change,
)

# `uwf init`: make a git repository a store.
#
# An existing repository keeps all it has, and gets the setting ``uwf.store = true``, by which uwf
# finds it from the folders below.


class Initialized(NamedTuple):
    store: Store
    created: bool

    is_adopted: bool = False


def init_store(path: str | None, cwd: str, environ: Mapping[str, str]) -> Initialized:
    """Make the repository at *path* a store; create it if it does not exist.

    Without a path: the default store of the user. A *path* that leads to *cwd* or above, such as
    ``.``, stands for the repository around it, if there is any.
    """
    target = os.path.join(cwd, os.path.expanduser(path)) if path else default_path(environ)
    git_dir = find_git_dir(target)
    if git_dir is None and path:
        git_dir = _find_above(os.path.realpath(target), os.path.realpath(cwd), environ)
    if git_dir is None:
        if not is_unfinished(target):
            raise Refused(
                f"{target} is not empty, and is no git repository",
                code="not-empty",
                hint="name a new folder: `uwf init store.git`; or make this one a repository "
                "first: `git init`",
                path=target,
            )
        store = create_store(target, environ=environ)
    else:
        store = open_store(git_dir, environ=environ)
    is_new = not store.config.get_flag("uwf.store", default=False)
    if is_new:
        with own_change(store):
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


# `uwf init --shared`: a bare repository to push to, with group rights, hooks and settings.
#
# Nothing changes before the hooks are known to be installable; existing settings stay.

_HIDE = "transfer.hideRefs"
# Refs of one store alone; and, hidden in a new store, refs by which git shows another commit.
_LOCAL_REFS, _REPLACEMENTS = "refs/uwf", "refs/replace"

_AS_A_GROUP = GitConfig({NAME.lower(): ["group"]})
_SETTINGS = {NAME: "group", **PINNED}
# `git init --shared` sets it too; the branches of an existing repository are not ours to restrict.
_NEW_SETTINGS = {"receive.denyNonFastForwards": "true"}


class Shared(NamedTuple):
    store: Store
    created: bool

    hooks: list[str]


def init_shared(path: str | None, cwd: str, environ: Mapping[str, str], *, python: str) -> Shared:
    """Make a bare repository at *path* for a group to push to; its hooks run uwf with *python*."""
    target = os.path.join(cwd, os.path.expanduser(path)) if path else default_path(environ)
    _check_hooks(target, environ)
    with shared_umask(_AS_A_GROUP):
        # From the root, so that a project around *cwd* is never meant.
        made = init_store(target, os.sep, environ)
        hooks = install_hooks(made.store.path, python=python)
        config_path = os.path.join(made.store.path, "config")
        with own_change(made.store):
            _configure(config_path, _SETTINGS)
            _hide(config_path, _LOCAL_REFS)
            if made.created:
                _configure(config_path, _NEW_SETTINGS)
                _hide(config_path, _REPLACEMENTS)
        share_folder(made.store.path)
    return Shared(open_store(made.store.path, environ=environ), made.created, hooks)


def _check_hooks(target: str, environ: Mapping[str, str]) -> None:
    git_dir = find_git_dir(target)
    if git_dir is None:
        check_hooks(target, GitConfig({}))
        return
    store = open_store(git_dir, environ=environ)
    # git guesses the same where the config does not say.
    if not store.config.get_flag("core.bare", default=os.path.basename(git_dir) != ".git"):
        raise Refused(
            f"{store.path} has a work tree; a store that several people push to must be bare",
            code="not-bare",
            hint="name another place: `uwf init --shared PATH.git`",
            path=store.path,
        )
    check_hooks(store.path, read_config_file(os.path.join(store.path, "config")))


def _configure(config_path: str, settings: Mapping[str, str]) -> None:
    own = read_config_file(config_path)
    for name, value in settings.items():
        if own.get(name) is None:
            set_config(config_path, name, value)


def _hide(config_path: str, refs: str) -> None:
    if refs not in read_config_file(config_path).get_all(_HIDE):
        add_config(config_path, _HIDE, refs)
