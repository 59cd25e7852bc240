"""`uwf clone`: a new store with all that another one shares.

Owns: what a clone begins with. Knows nothing of: how it is transferred.
Always true: the place is empty before, and afterwards a whole store or as it was: it is made
beside its place and moved there at the end.
"""

import os
import shutil
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.fetch_refs import Fetched, fetch_remote
from uwf_git.errors import Refused
from uwf_git.store.durable import sync_directories
from uwf_git.store.git_config import set_config
from uwf_git.store.refs import RefFiles
from uwf_git.store.remote_url import BadRemoteUrl, folder_of, parse_remote_url
from uwf_git.store.remotes import add_remote
from uwf_git.store.store import create_store, open_store
from uwf_git.store.synced_folder import sync_folder

ORIGIN = "origin"


class PlaceTaken(Refused):
    """There is something where the clone was to be."""

    code = "place-taken"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is there already, and not an empty folder",
            hint="name another place: `uwf clone URL PATH`",
            path=path,
        )


class Cloned(NamedTuple):
    """A store that was made."""

    path: str
    fetched: Fetched


def clone_store(caller: Caller, url: str, path: str | None) -> Cloned:
    """Make a store at *path* with what the one at *url* shares, and remember where it came from.

    Raises:
        BadRemoteUrl: the URL leads nowhere, or says no name for the clone.
        PlaceTaken: *path* is not empty.
        RemoteFailed: it cannot be reached, or breaks off; nothing is left behind.
        OSError: the machine would not let it be made.
    """
    target = os.path.join(caller.cwd, os.path.expanduser(path or _folder(url, caller.cwd)))
    target = os.path.abspath(target)
    if os.path.lexists(target) and not _is_empty_folder(target):
        raise PlaceTaken(target)
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
    # Nobody looks here before it is in its place, so that all refs may be forced at once.
    quick = store._replace(refs=RefFiles(made, durable=False))
    fetched = fetch_remote(quick, caller, ORIGIN)
    if store.config.get_flag("uwf.fsync", default=True):
        sync_folder(made)
    return fetched


def _folder(url: str, cwd: str) -> str:
    parsed = parse_remote_url(url, relative_to=cwd)
    name = folder_of(parsed.text)
    if not name:
        raise BadRemoteUrl(url, "says no name for the clone; give a path as well")
    return name


def _is_empty_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.listdir(path)
