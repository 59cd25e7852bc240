"""The gc log: why packing in the background did not work.

Owns: one file below `<git dir>/uwf/`. Knows nothing of: packing.
Always true: what is in it is told to a person once; for a day after it was written nothing
begins by itself, since it would only fail again.
Source: git's `gc.log`, git-gc(1).
"""

import os
import time

from uwf_git.store.durable import remove
from uwf_git.store.store import Store

_NO_RETRY_S = 24 * 3600
_MOST_BYTES = 10_000


def write_gc_log(store: Store, why: str) -> None:
    """Keep *why* for whoever looks next."""
    os.makedirs(store.local_path(), exist_ok=True)
    with open(_path(store), "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(why + "\n")


def take_gc_log(store: Store) -> str | None:
    """Give what was kept, and forget it; None if there is nothing."""
    try:
        with open(_path(store), "rb") as file:
            why = file.read(_MOST_BYTES).decode(errors="replace").strip()
    except FileNotFoundError:
        return None
    remove(_path(store))
    return why or None


def has_failed_lately(store: Store) -> bool:
    """Tell whether packing in the background failed within a day."""
    try:
        return time.time() - os.stat(_path(store)).st_mtime < _NO_RETRY_S
    except FileNotFoundError:
        return False


def _path(store: Store) -> str:
    return store.local_path("gc.log")
