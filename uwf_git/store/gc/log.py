"""The gc log: why packing in the background failed, shown to the user once.

For a day after a failure packing does not start by itself, since it would fail again.
Source: git's `gc.log`, git-gc(1).
"""

import os
import time

from uwf_git.store.disk.durable import remove_file
from uwf_git.store.store import Store

_NO_RETRY_S = 24 * 3600
_MOST_BYTES = 10_000


def write_gc_log(store: Store, why: str) -> None:
    """Record *why* packing in the background failed."""
    os.makedirs(store.local_path(), exist_ok=True)
    with open(_path(store), "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(why + "\n")


def take_gc_log(store: Store) -> str | None:
    """Return the recorded failure and remove it; None if there is none."""
    try:
        with open(_path(store), "rb") as file:
            why = file.read(_MOST_BYTES).decode(errors="replace").strip()
    except FileNotFoundError:
        return None
    remove_file(_path(store))
    return why or None


def has_failed_lately(store: Store) -> bool:
    """Check whether packing in the background failed within the last day."""
    try:
        # A time in the future is that of a clock which has been set back since.
        return abs(time.time() - os.stat(_path(store)).st_mtime) < _NO_RETRY_S
    except FileNotFoundError:
        return False


def _path(store: Store) -> str:
    return store.local_path("gc.log")
