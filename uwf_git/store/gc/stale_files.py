"""Remove what killed processes leave below a git directory.

That is: temporary files, markers of ref locks, and locks, runs, logs and work directories of
ended threads. Nothing that a living process may need is removed. What a lock guards is removed
under that lock; what no lock guards, when it is a day old. Locks are not waited for: what is
held stays. Unneeded objects are left to git's prune.
"""

import os
import re
import time
from collections.abc import Iterator

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.disk.durable import TEMPORARY, remove_file
from uwf_git.store.disk.lockfile import break_dead_locks, markers
from uwf_git.store.gc.lock import may_live
from uwf_git.store.objects.pack_file import INDEX, PACK
from uwf_git.store.objects.pack_writer import KEEP, remove_dead_keep
from uwf_git.store.objects.walk import is_descendant
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.local_files import (
    FILES,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    LOGS,
    files_index,
    forget_log,
    forget_workdir,
    has_files,
    log_path,
    workdirs_folder,
)
from uwf_git.store.threads.lock import ThreadBusy, forget_lock, lock_thread
from uwf_git.store.threads.run_dir import (
    is_any_alive,
    list_threads_with_runs,
    remove_runs,
    runs_folder,
)

# Remove what killed processes leave in the folder of packs.
#
# That is: unfinished packs, packs without an index, and `.keep` files of dead writers. A file is
# removed only when it is old, or when a lock or a pid proves that its writer is dead. Source:
# git's builtin/repack.c (`.tmp-<pid>-pack-…`) and builtin/prune.c (`tmp_…`).

# git has these for the instant between writing and naming packs; it never removes stale ones.
_UNNAMED = re.compile(r"\.tmp-([0-9]{1,10})-pack-.*")
_UNNAMED_OLD_S = 3600
# These are written for as long as packing takes; git removes stale ones after two weeks.
_UNFINISHED = "tmp_"
_UNFINISHED_OLD_S = 24 * 3600
# In objects/, unlike objects/pack/, other files begin with tmp_ too.
_UNFINISHED_ABOVE = "tmp_pack_"
_SUM_BYTES = 20


def remove_stale_packs(store: Store) -> int:
    """Remove what killed writers of packs left; return how many files that were."""
    objects = os.path.join(store.path, "objects")
    folder = os.path.join(objects, "pack")
    removed = 0
    for place, prefix in ((objects, _UNFINISHED_ABOVE), (folder, _UNFINISHED)):
        for entry in os.scandir(place):
            if _is_stale(entry, prefix):
                remove_file(entry.path)
                removed += 1
    kept = [entry.path for entry in os.scandir(folder) if entry.name.endswith(KEEP)]
    removed += sum(map(remove_dead_keep, kept))
    for path in list(_without_index(folder)):
        remove_file(path)
        removed += 1
    return removed


def _without_index(folder: str) -> Iterator[str]:
    """Yield the packs that uwf wrote or united and that nobody can read, if they are old."""
    names = set(os.listdir(folder))
    for name in sorted(names):
        stem, ending = os.path.splitext(name)
        path = os.path.join(folder, name)
        if ending == PACK and not names & {stem + INDEX, stem + KEEP} and _is_left(path):
            yield path


def _is_left(path: str) -> bool:
    """Check whether a pack is old and not git's, which names a pack after its checksum."""
    try:
        with open(path, "rb", buffering=0) as file:
            left = os.fstat(file.fileno())
            file.seek(-min(_SUM_BYTES, left.st_size), os.SEEK_END)
            is_ours = not path.endswith(f"-{file.read().hex()}{PACK}")
    except OSError:
        # It is gone, or another user's.
        return False
    is_old = time.time() - left.st_mtime > _UNFINISHED_OLD_S
    # The index may have come since the folder was listed.
    return is_old and is_ours and not os.path.exists(path.removesuffix(PACK) + INDEX)


def _is_stale(entry: os.DirEntry[str], prefix: str) -> bool:
    match = _UNNAMED.fullmatch(entry.name)
    if match is None and not entry.name.startswith(prefix):
        return False
    try:
        left = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        # It was finished in this moment.
        return False
    age_s = time.time() - left.st_mtime
    if match is None:
        return age_s > _UNFINISHED_OLD_S and entry.is_file(follow_symlinks=False)
    # The name has no host; the pid is looked up on this one.
    host = os.uname().nodename
    return age_s > _UNNAMED_OLD_S and not may_live(int(match[1]), host, left)


_OLD_S = 24 * 3600


def remove_stale_files(store: Store) -> int:
    """Remove what killed processes left; return how many things that were."""
    removed = break_dead_locks(store.path)
    for path in _old_temporaries(store):
        remove_file(path)
        removed += 1
    for thread in sorted(_leftover_threads(store)):
        removed += _remove_thread_files(store, thread)
    return removed


def _old_temporaries(store: Store) -> Iterator[str]:
    objects = os.path.join(store.path, "objects")
    for folder, prefix in (
        (store.path, TEMPORARY),
        (markers(store.path), TEMPORARY),
        (workdirs_folder(store), TEMPORARY),
        # git's prune removes these too, but there may be no git.
        (objects, "tmp_obj_"),
        # Left by a killed `git gc`; the next one would stop at it.
        (os.path.join(objects, "info"), "commit-graph.lock"),
    ):
        for entry in _entries(folder):
            if entry.name.startswith(prefix) and _is_old(entry):
                yield entry.path


def _leftover_threads(store: Store) -> set[ThreadId]:
    """Return the threads that have local files but are not active, or have both refs."""
    found: set[ThreadId] = set()
    found.update(
        ThreadId(thread)
        for entry in _entries(store.local_path("locks"))
        # A thread has several locks: <id>, <id>.drive.
        if is_thread_id(thread := entry.name.partition(".")[0])
    )
    found.update(list_threads_with_runs(store))
    # The log of an ended thread stays readable for a day.
    found.update(
        ThreadId(thread)
        for entry in _entries(store.local_path(LOGS))
        if is_thread_id(thread := entry.name.removesuffix(LOG_SUFFIX)) and _is_old(entry)
    )
    # The work directory is recorded before the thread exists, so a young one may be in use.
    found.update(
        ThreadId(entry.name)
        for entry in _entries(workdirs_folder(store))
        if is_thread_id(entry.name)
        and _is_old(entry)
        and not has_files(store, ThreadId(entry.name))
    )
    found.update(
        ThreadId(thread)
        for entry in _entries(store.local_path(FILES))
        if is_thread_id(thread := entry.name.removesuffix(INDEX_SUFFIX)) and _is_old(entry)
    )
    active = set(store.refs.names(ACTIVE))
    archived = set(store.refs.names(ARCHIVE))
    both = {ThreadId(name) for name in active & archived if is_thread_id(name)}
    return {thread for thread in found if thread not in active} | both


def _remove_thread_files(store: Store, thread: ThreadId) -> int:
    try:
        with lock_thread(store, thread, since_ms=int(time.time() * 1000)):
            if not _is_over(store, thread):
                return 0
            if not _remove_runs(store, thread):
                return 0
            remove_file(files_index(store, thread))
            forget_workdir(store, thread)
            _remove_log(store, thread)
            forget_lock(store, thread)
            return 1
    except ThreadBusy:
        return 0


def _is_over(store: Store, thread: ThreadId) -> bool:
    """Check that the thread has ended; remove its active ref, if it still has one."""
    active = store.refs.find(ACTIVE + thread)
    if active is None:
        return True
    archived = store.refs.find(ARCHIVE + thread)
    if archived is None:
        return False
    # Otherwise the thread was ended elsewhere and continued here: that is work to keep.
    is_left_by_archiving = is_descendant(store.objects, archived, active)
    return is_left_by_archiving and store.refs.delete(ACTIVE + thread, seen=active)


def _remove_runs(store: Store, thread: ThreadId) -> bool:
    """Remove the runs of the thread; if one is young or alive, keep all and return False."""
    # Output that came too late stays readable for a day.
    if any(not _is_old(entry) for entry in _entries(runs_folder(store, thread))):
        return False
    if is_any_alive(store, thread):
        return False
    remove_runs(store, thread)
    return True


def _remove_log(store: Store, thread: ThreadId) -> None:
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
