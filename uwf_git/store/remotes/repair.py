"""Make a mirror a remote for uwf (mirror.py says what a mirror is)."""

import os

from uwf_git.store.config_watch import own_change
from uwf_git.store.git.config import read_config_file, rewrite_config
from uwf_git.store.git.config_text import edit_config, remove_values
from uwf_git.store.refs.listing import list_refs
from uwf_git.store.remotes.mirror import moves_threads_back
from uwf_git.store.remotes.remotes import refspecs_of
from uwf_git.store.store import Store

_OTHERS = ("heads", "tags")


def repair_remote(store: Store, name: str) -> None:
    """Give the remote *name*, a mirror, the settings that `uwf remote add` writes.

    Where the store has branches or tags, `git fetch` goes on to copy those. Only the repository's
    own config is changed.

    Raises:
        RefLocked: another process holds the lock of the config.
    """
    path = os.path.join(store.path, "config")
    own = read_config_file(path)
    section = f"remote.{name}"
    wanted = [
        *refspecs_of(name),
        *(
            ("fetch", f"+refs/{each}/*:refs/{each}/*")
            for each in _OTHERS
            if list_refs(store.path, f"refs/{each}/")
        ),
    ]

    def change(text: str) -> str:
        text = remove_values(text, f"{section}.mirror", own.get_all(f"{section}.mirror"))
        for key in ("fetch", "push"):
            old = own.get_all(f"{section}.{key}")
            text = remove_values(text, f"{section}.{key}", [*filter(moves_threads_back, old)])
        for key, value in wanted:
            if value not in own.get_all(f"{section}.{key}"):
                text = edit_config(text, f"{section}.{key}", value, keep=True)
        return text

    with own_change(store):
        rewrite_config(path, change)
