"""The work directory and the log of each thread, which stay on this machine.

A work directory is a small file below `<git dir>/uwf-workdirs/`: as a setting in git config, every
start would rewrite a file that every start reads, and 200 starting threads would wait for its lock.
"""

import os
from typing import TYPE_CHECKING

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.disk.durable import FileMemory, read_if_there, remove_file, replace_file
from uwf_git.store.store import Store

if TYPE_CHECKING:
    from uwf_git.store.git.fenced import Kept

SETTINGS = "git-settings"
"""The folder of the user's own files about a store that has the settings of each thread."""

STAYS = "worktrees-that-stay"
"""The folder of notes on worktrees of ended branches, below ``Store.local_path``."""

UNRECORDED, SLOW_TO_RECORD = "files-not-recorded", "files-slow-to-record"
"""The folder of notes on threads whose files are not recorded, below ``Store.local_path``."""


def note_once(store: Store, folder: str, thread: ThreadId, content: bytes) -> None:
    """Note in *folder*, for a warning, what is wrong with *thread*, unless it is noted already."""
    path = store.local_path(folder, thread)
    if not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, content)


def take_notes(store: Store, folder: str) -> dict[ThreadId, bytes]:
    path = store.local_path(folder)
    names = sorted(filter(is_thread_id, os.listdir(path))) if os.path.isdir(path) else []
    told = {ThreadId(name): read_if_there(os.path.join(path, name)) for name in names}
    found = {thread: content for thread, content in told.items() if content}
    for thread in found:
        # The empty file says that it is known.
        replace_file(os.path.join(path, thread), b"")
    return found


_FOLDER = "uwf-workdirs"
_WORKDIRS: FileMemory[str | None] = FileMemory(256)


def set_workdir(store: Store, thread: ThreadId, path: str) -> None:
    replace_file(_file(store, thread), os.fsencode(path) + b"\n")


def give_workdir(store: Store, thread: ThreadId, path: str, *, known: "Kept | None" = None) -> None:
    """Record that the agents of *thread* run in *path*, before any agent has run.

    The settings that git has there now are kept: an agent may change them. Settings that are
    *known* from before other agents ran there are kept instead.
    """
    kept = settings_file(store, thread)
    if kept is not None:
        from uwf_git.store.git.fenced import NOTHING_KEPT, keep_settings  # noqa: PLC0415 (only a start needs it)

        keep_settings(kept, path, known=known or NOTHING_KEPT)
    set_workdir(store, thread, path)


def settings_file(store: Store, thread: ThreadId) -> str | None:
    if store.trust_file is None:
        return None
    return os.path.join(os.path.dirname(store.trust_file), SETTINGS, thread)


def find_workdir(store: Store, thread: ThreadId) -> str | None:
    """Return the work directory of *thread*; None if this machine has no record of it."""
    return _WORKDIRS.read(_file(store, thread), _read_workdir)


def _read_workdir(path: str) -> str | None:
    return os.fsdecode(read_if_there(path).removesuffix(b"\n")) or None


def forget_workdir(store: Store, thread: ThreadId) -> None:
    """Remove the record of the work directory of *thread*, if no files are recorded there."""
    if not has_files(store, thread):
        remove_file(_file(store, thread))


def forget_settings(store: Store, thread: ThreadId) -> None:
    """Remove what is kept of the settings that git had when *thread* began."""
    if (path := settings_file(store, thread)) is not None:
        remove_file(path)


def workdirs_folder(store: Store) -> str:
    return os.path.join(store.path, _FOLDER)


def _file(store: Store, thread: ThreadId) -> str:
    return os.path.join(workdirs_folder(store), thread)


LOGS = "logs"
LOG_SUFFIX = ".log"


def log_path(store: Store, thread: ThreadId) -> str:
    return store.local_path(LOGS, thread + LOG_SUFFIX)


def forget_log(store: Store, thread: ThreadId) -> None:
    remove_file(log_path(store, thread))


# What the chain of a thread's files needs here: git's index of it, and how many bytes it has.

FILES = "files"
INDEX_SUFFIX = ".index"
_SIZE_SUFFIX = ".size"


def files_index(store: Store, thread: ThreadId) -> str:
    return store.local_path(FILES, thread + INDEX_SUFFIX)


def files_size(store: Store, thread: ThreadId) -> str:
    return store.local_path(FILES, thread + _SIZE_SUFFIX)


def has_files(store: Store, thread: ThreadId) -> bool:
    return os.path.exists(files_size(store, thread))


def forget_files(store: Store, thread: ThreadId) -> None:
    for path in (
        files_index(store, thread),
        files_size(store, thread),
        store.local_path(UNRECORDED, thread),
        store.local_path(SLOW_TO_RECORD, thread),
    ):
        remove_file(path)
