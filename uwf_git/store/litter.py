"""Litter: what killed processes leave below a git directory, and who sweeps it.

Owns: knowing litter from what is in use. Knows nothing of: objects that nothing needs, which
are git's own to prune.
Always true: nothing is swept that a living process may want. What a lock guards is swept under
that lock, which the dead do not hold; what no lock guards is swept when it is a day old, and no
process has it for longer than a moment. Nothing here is waited for: what is held is left.

A kill leaves little, and none of it hinders anyone: temporary files, markers of ref locks, and,
when a thread is ended, what belonged to it.
"""

import os
import shutil
import time
from collections.abc import Iterator

from uwf_git.model.thread_id import ThreadId, is_thread_id
from uwf_git.store.descent import goes_on_from
from uwf_git.store.durable import TEMPORARY, remove
from uwf_git.store.file_lock import hold_lock
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.ref_lock import break_dead_locks, markers
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, forget_lock, lock_thread
from uwf_git.store.thread_log import LOG_SUFFIX, LOGS, forget_log, log_path
from uwf_git.store.workdirs import forget_workdir, workdirs_folder

_OLD_S = 24 * 3600


def sweep_litter(store: Store) -> int:
    """Remove what killed processes left; tell how many things that were.

    Safe beside everything that runs.

    Raises:
        OSError: the machine would not let it be removed.
    """
    if not store.is_kept:
        return 0
    swept = break_dead_locks(store.path)
    for path in _old_temporaries(store):
        remove(path)
        swept += 1
    for thread in sorted(_traces(store)):
        swept += _sweep_thread(store, thread)
    return swept


def _old_temporaries(store: Store) -> Iterator[str]:
    objects = os.path.join(store.path, "objects")
    for folder, prefix in (
        (store.path, TEMPORARY),
        (markers(store.path), TEMPORARY),
        (workdirs_folder(store), TEMPORARY),
        # git's prune takes these too, but there may be no git.
        (objects, "tmp_obj_"),
        # Of a killed `git gc`, and the next one would stop at it.
        (os.path.join(objects, "info"), "commit-graph.lock"),
    ):
        for entry in _entries(folder):
            if entry.name.startswith(prefix) and _is_old(entry):
                yield entry.path


def _traces(store: Store) -> set[ThreadId]:
    """Give the threads that have something that only an active one needs, and are none."""
    found: set[ThreadId] = set()
    found.update(
        ThreadId(thread)
        for folder in (store.local_path("locks"), store.local_path("run"))
        for entry in _entries(folder)
        # A thread has several locks: <id>, <id>.drive.
        if is_thread_id(thread := entry.name.partition(".")[0])
    )
    # For a day whoever wants to know why a thread ended can read what was logged.
    found.update(
        ThreadId(thread)
        for entry in _entries(store.local_path(LOGS))
        if is_thread_id(thread := entry.name.removesuffix(LOG_SUFFIX)) and _is_old(entry)
    )
    # The work directory of a thread is there before the thread is.
    found.update(
        ThreadId(entry.name)
        for entry in _entries(workdirs_folder(store))
        if is_thread_id(entry.name) and _is_old(entry)
    )
    active = set(store.refs.names(ACTIVE))
    archived = set(store.refs.names(ARCHIVE))
    both = {ThreadId(name) for name in active & archived if is_thread_id(name)}
    return {thread for thread in found if thread not in active} | both


def _sweep_thread(store: Store, thread: ThreadId) -> int:
    """Sweep what is left of a thread that is not active, unless somebody works on it."""
    try:
        with lock_thread(store, thread, since_ms=int(time.time() * 1000)):
            if not _is_over(store, thread):
                return 0
            if not _sweep_runs(store, thread):
                return 0
            forget_workdir(store, thread)
            _sweep_log(store, thread)
            forget_lock(store, thread)
            return 1
    except ThreadBusy:
        return 0


def _is_over(store: Store, thread: ThreadId) -> bool:
    """Tell whether the thread has ended; its active ref, if it has one still, is removed."""
    active = store.refs.find(ACTIVE + thread)
    if active is None:
        return True
    archived = store.refs.find(ARCHIVE + thread)
    if archived is None:
        return False
    # Otherwise somebody went on with a thread that was ended elsewhere: that is work.
    is_litter = goes_on_from(store.objects, archived, active)
    return is_litter and store.refs.delete(ACTIVE + thread, seen=active)


def _sweep_runs(store: Store, thread: ThreadId) -> bool:
    """Remove the runs of the thread; leave them all and say no if one is young, or lives."""
    folder = store.local_path("run", thread)
    for entry in _entries(folder):
        # A day for whoever would still look at work that came too late.
        if not _is_old(entry):
            return False
        if entry.name.endswith(".alive"):
            with hold_lock(entry.path, wait=False) as alive:
                if alive is None:
                    return False
    shutil.rmtree(folder, ignore_errors=True)
    return True


def _sweep_log(store: Store, thread: ThreadId) -> None:
    try:
        if _is_long_ago(os.stat(log_path(store, thread)).st_mtime):
            forget_log(store, thread)
    except FileNotFoundError:
        return


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []


def _is_old(entry: os.DirEntry[str]) -> bool:
    try:
        return _is_long_ago(entry.stat(follow_symlinks=False).st_mtime)
    except FileNotFoundError:
        return False


def _is_long_ago(time_s: float) -> bool:
    return time.time() - time_s > _OLD_S
