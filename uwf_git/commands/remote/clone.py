"""`uwf clone`: make a new store with everything that another one shares."""

import os
import shutil
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.remote.fetch import Fetched, fetch_remote
from uwf_git.errors import Refused
from uwf_git.store.disk.durable import sync_directories, sync_folder
from uwf_git.store.git.config import set_config
from uwf_git.store.refs.refs import Refs
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.remotes.url import bad_remote_url, folder_of, parse_remote_url
from uwf_git.store.store import create_store, open_store

ORIGIN = "origin"


class Cloned(NamedTuple):
    """The new store."""

    path: str
    fetched: Fetched


def clone_store(caller: Caller, url: str, path: str | None) -> Cloned:
    """Make a store at *path* with what the store at *url* shares, and add that as remote origin.

    The clone is made beside *path* and renamed at the end: it is complete or not there at all.

    Raises:
        BadUsage: the URL is malformed, or *path* is None and the URL has no name for it.
        Refused: *path* is not empty.
        RemoteFailed: it cannot be reached, or breaks off.
    """
    target = os.path.join(caller.cwd, os.path.expanduser(path or _folder(url, caller.cwd)))
    target = os.path.abspath(target)
    if os.path.lexists(target) and not _is_empty_folder(target):
        raise Refused(
            f"{target} exists already, and is not an empty folder",
            code="place-taken",
            hint="name another path: `uwf clone URL PATH`",
            path=target,
        )
    parent, name = os.path.split(target)
    made = os.path.join(parent, f".{name}.{os.urandom(4).hex()}.clone")
    try:
        fetched = _fill(made, url, caller)
        os.rename(made, target)
        sync_directories([parent])
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return Cloned(target, fetched)


def _fill(made: str, url: str, caller: Caller) -> Fetched:
    create_store(made, environ=caller.environ)
    set_config(os.path.join(made, "config"), "uwf.store", "true")
    store = open_store(made, environ=caller.environ)
    add_remote(store, ORIGIN, url, cwd=caller.cwd)
    # No other process uses the store yet, so all refs are synced at once at the end.
    quick = store._replace(refs=Refs(made, durable=False))
    fetched = fetch_remote(quick, caller, ORIGIN)
    if store.config.get_flag("uwf.fsync", default=True):
        sync_folder(made)
    return fetched


def _folder(url: str, cwd: str) -> str:
    parsed = parse_remote_url(url, relative_to=cwd)
    name = folder_of(parsed.text)
    if not name:
        raise bad_remote_url(url, "has no name for the clone; give a path as well")
    return name


def _is_empty_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.listdir(path)
