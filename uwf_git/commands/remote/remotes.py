"""`uwf remote list|add|remove|repair`: the repositories that this store shares with."""

from typing import Any

from uwf_git.commands.caller import Caller
from uwf_git.errors import Refused, name_some
from uwf_git.store.remotes.mirror import list_mirrors
from uwf_git.store.remotes.remotes import (
    Remote,
    add_remote,
    choose_remote,
    list_remotes,
    remove_remote_settings,
    repair_remote,
)
from uwf_git.store.remotes.tracking import forget_tracking, read_shared
from uwf_git.store.remotes.url import shown_url
from uwf_git.store.store import Store, open_store


def list_remote_rows(store: Store) -> list[dict[str, Any]]:
    """Return a row for each remote: its URLs, and how much was last seen there."""
    rows = []
    for remote in list_remotes(store.config):
        seen = read_shared(store, remote)
        row = {"name": remote.name, "url": remote.shown}
        if remote.push_urls:
            row["pushUrl"] = ", ".join(map(shown_url, remote.push_urls))
        rows.append(
            {
                **row,
                "threads": len(seen.threads.keys() - seen.archive.keys()),
                "archived": len(seen.archive),
                "workflows": len(seen.workflows),
            }
        )
    return rows


def remove_remote(store: Store, name: str) -> Remote:
    remote = choose_remote(store.config, name)
    # Settings last: if this is killed in between, the same command does the rest.
    forget_tracking(store, remote)
    remove_remote_settings(store, name)
    return remote


def add_remote_at(store: Store, caller: Caller, name: str, url: str) -> Remote:
    """Add the repository at *url* as remote *name*; do not connect to it."""
    return add_remote(store, name, url, cwd=caller.cwd)


def repair_remotes(store: Store, caller: Caller, name: str | None) -> list[str]:
    """Make the remote *name*, or every mirror, a remote for uwf; return the names."""
    mirrors = list_mirrors(store.config)
    if name is not None and name not in mirrors:
        choose_remote(store.config, name)
        return []
    names = mirrors if name is None else [name]
    for each in names:
        repair_remote(store, each)
    left = list_mirrors(open_store(store.path, environ=caller.environ).config)
    unchanged = [each for each in names if each in left]
    if unchanged:
        raise Refused(
            f"remote {name_some(unchanged)} is a mirror by settings outside of this repository",
            code="mirror-elsewhere",
            hint="git says where: `git config --show-origin --get-regexp '^remote[.]'`",
            remotes=unchanged,
        )
    return names
