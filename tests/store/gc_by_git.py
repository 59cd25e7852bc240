"""git's own gc, run as a store runs it."""

import os
from pathlib import Path

from uwf_git.store.gc.packing import run_git_gc
from uwf_git.store.git.config import find_program
from uwf_git.store.store import Store


def gc(store: Store, *, auto: bool = False, environ: dict[str, str] | None = None) -> None:
    program = find_program("git", os.environ)
    assert program is not None
    run_git_gc(store, program, environ or dict(os.environ), auto=auto)


def loose(store: Store) -> list[str]:
    """List the loose objects of a store."""
    files = Path(store.path, "objects").glob("??/*")
    return [path.parent.name + path.name for path in files]
