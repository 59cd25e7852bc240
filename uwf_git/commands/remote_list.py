"""`uwf remote list`: the repositories that this one shares with."""

from typing import Any

from uwf_git.store.remote_url import shown_url
from uwf_git.store.remotes import list_remotes
from uwf_git.store.store import Store
from uwf_git.store.tracking import read_shared


def list_rows(store: Store) -> list[dict[str, Any]]:
    """Give a row for each remote: where it is, and how much was last seen there."""
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
