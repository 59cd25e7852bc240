"""git's own gc, run as a store runs it."""

import os
from pathlib import Path

from uwf_git.store.packing import pack_objects
from uwf_git.store.store import Store


def gc(store: Store, *, auto: bool = False, environ: dict[str, str] | None = None) -> None:
    pack_objects(store, environ or os.environ, auto=auto)


def loose(store: Store) -> list[str]:
    """List the loose objects of a store."""
    files = Path(store.path, "objects").glob("??/*")
    return [path.parent.name + path.name for path in files]
