"""Work directories: where the agents of a thread run on this machine.

Owns: one small file a thread below `<git dir>/uwf-workdirs/`. Local by design: a path means
nothing elsewhere, so it is never content, and a thread that came from elsewhere has none.
Why not git config: every start would rewrite one file that every start reads, and 200 starting
threads would wait for its lock.
"""

import os

from uwf_git.model.thread_id import ThreadId
from uwf_git.store.durable import remove, replace_file
from uwf_git.store.store import Store

_FOLDER = "uwf-workdirs"


def set_workdir(store: Store, thread: ThreadId, path: str) -> None:
    """Remember that the agents of *thread* run in *path*."""
    if store.is_kept:
        replace_file(_file(store, thread), os.fsencode(path) + b"\n")


def find_workdir(store: Store, thread: ThreadId) -> str | None:
    """Give the work directory of *thread*, or None if this machine was never told."""
    if not store.is_kept:
        return None
    try:
        with open(_file(store, thread), "rb") as file:
            return os.fsdecode(file.read().removesuffix(b"\n"))
    except FileNotFoundError:
        return None


def forget_workdir(store: Store, thread: ThreadId) -> None:
    """Forget the work directory of a thread that has ended."""
    if store.is_kept:
        remove(_file(store, thread))


def workdirs_folder(store: Store) -> str:
    """Give the folder of a kept store in which there is a file for each thread."""
    return os.path.join(store.path, _FOLDER)


def _file(store: Store, thread: ThreadId) -> str:
    return os.path.join(workdirs_folder(store), thread)
