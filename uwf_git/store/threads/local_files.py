"""Files of a thread that stay on this machine: work directory, log, and each turn's output.

    <git dir>/uwf/run/<thread>/<commit>/         pid, stdout, stderr, exit (agents/run_files.py)
    <git dir>/uwf/run/<thread>/<commit>.alive    the lock that the agent holds while it lives
    <git dir>/uwf/run/<thread>/<commit>.turn     role; hash, name and AgentConfig of the agent
    <git dir>/uwf/run/<thread>/<commit>.stopped  why the agent was stopped from outside
    <git dir>/uwf/run/<thread>/<commit>.env      variables of the agent to be recorded, masked
    <git dir>/uwf/run/<thread>/<commit>.prints   fingerprints of the secrets that the agent had
    <git dir>/uwf/run/<thread>/<commit>.output   the file in which it may leave its meta, as a path
    <git dir>/uwf/run/<thread>/<commit>.report   what was there when the agent was ended for it
    <git dir>/uwf/run/<thread>/<commit>.before   the commit of the project's files before the turn
    <git dir>/uwf/run/<thread>/<commit>.files/   the agent's own files ($UWF_STEP_DIR)
    <git dir>/uwf/run/<thread>/<commit>.checks/<n>  the same for each check of the role, from 0

The commit is the one after which the turn began, so a retry never takes up an older attempt.
"""

import os
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.disk.durable import (
    FileMemory,
    list_names,
    read_if_there,
    remove_file,
    replace_file,
)
from uwf_git.store.disk.locks import hold_lock, is_held
from uwf_git.store.oid import Oid, is_oid
from uwf_git.store.store import Store

if TYPE_CHECKING:
    from uwf_git.store.git.fenced import Kept


_RUN = "run"
_REMOVED = ".removed"
_ALIVE, _STOPPED, _FILES, _CHECKS = ".alive", ".stopped", ".files", ".checks"

Note = Literal["turn", "env", "prints", "output", "report", "before"]
"""A text that is kept of a turn; ``begin`` leaves ``before``."""

MAX_REASON = 1000
"""Characters of a stop reason that are kept."""


class RunDir(NamedTuple):
    path: str

    @property
    def commit(self) -> Oid:
        """The commit after which the turn began."""
        return Oid(os.path.basename(self.path))

    @property
    def alive(self) -> str:
        """The lock that the agent holds while it lives."""
        return self.path + _ALIVE

    @property
    def step_dir(self) -> str:
        return self.path + _FILES

    def get_check(self, number: int) -> "RunDir":
        """Return the directory of a check of this turn; it need not exist."""
        return RunDir(os.path.join(self.path + _CHECKS, str(number)))

    def list_checks(self) -> list["RunDir"]:
        return _list_checks(self.path + _CHECKS)

    def hold_alive(self) -> AbstractContextManager[int | None]:
        """Take the lock ``alive`` and yield it; yield None if the agent holds it."""
        return hold_lock(self.alive, wait=False)

    def is_alive(self) -> bool:
        """Return whether the agent, or a daemon that it left behind, holds the lock."""
        return is_held(self.alive)

    def read(self, note: Note) -> str:
        """Return what was written as *note*; "" if nothing was."""
        with suppress(UnicodeDecodeError):
            return read_if_there(f"{self.path}.{note}").decode()
        return ""

    def write(self, note: Note, text: str) -> None:
        # A power loss ends the agent too, so these files need not survive one.
        replace_file(f"{self.path}.{note}", text.encode(errors="replace"), durable=False)

    def begin(self, turn: str) -> None:
        for folder in (self.path, self.step_dir, self.path + _CHECKS):
            _remove_folder(folder)
        for suffix in (_STOPPED, *(f".{note}" for note in get_args(Note) if note != "before")):
            remove_file(self.path + suffix)
        self.write("turn", turn)

    def read_stop_reason(self) -> str | None:
        try:
            with open(self.path + _STOPPED, encoding="utf-8", errors="replace") as file:
                return file.read(MAX_REASON).rstrip("\n")
        except FileNotFoundError:
            return None

    def write_stop_reason(self, reason: str) -> None:
        """Write why the agent is being stopped, for the engine that records the run."""
        told = reason[:MAX_REASON].encode(errors="replace")
        replace_file(self.path + _STOPPED, told + b"\n", durable=False)

    def remove(self) -> None:
        # Moved away first: a daemon that the agent left behind may still make files there.
        with suppress(OSError):
            os.rename(self.step_dir, self.path + _REMOVED)
        folders = (self.path, self.step_dir, self.path + _REMOVED, self.path + _CHECKS)
        for folder in folders:
            _remove_folder(folder)
        for suffix in (_ALIVE, _STOPPED, *(f".{note}" for note in get_args(Note))):
            remove_file(self.path + suffix)


def get_run_dir(store: Store, thread: ThreadId, started_after: Oid) -> RunDir:
    """Return the run directory of the turn that began after a commit; it need not exist."""
    return RunDir(store.local_path(_RUN, thread, started_after))


def runs_folder(store: Store, thread: ThreadId) -> str:
    """Return the folder of the run directories of *thread*; it need not exist."""
    return store.local_path(_RUN, thread)


def has_runs(store: Store, thread: ThreadId) -> bool:
    return os.path.isdir(runs_folder(store, thread))


def list_run_dirs(store: Store, thread: ThreadId) -> list[RunDir]:
    """List the run directories of *thread*, one for each turn that is not recorded yet."""
    folder = runs_folder(store, thread)
    return [RunDir(os.path.join(folder, name)) for name in list_names(folder) if is_oid(name)]


def list_check_runs(store: Store, thread: ThreadId) -> list[RunDir]:
    """List the directories of the checks of *thread* that have begun and are not recorded yet."""
    folder = runs_folder(store, thread)
    folders = (name for name in list_names(folder) if name.endswith(_CHECKS))
    return [each for name in folders for each in _list_checks(os.path.join(folder, name))]


def _list_checks(folder: str) -> list[RunDir]:
    numbers = sorted(int(name) for name in list_names(folder) if name.isdecimal())
    return [RunDir(os.path.join(folder, str(number))) for number in numbers]


def list_threads_with_runs(store: Store) -> list[ThreadId]:
    """List the threads that have a folder of run directories, oldest first."""
    names = sorted(list_names(store.local_path(_RUN)))
    threads = [ThreadId(name) for name in names if is_thread_id(name)]
    return [thread for thread in threads if has_runs(store, thread)]


def is_any_alive(store: Store, thread: ThreadId) -> bool:
    """Return whether an agent, a check, or a daemon left behind, holds a run of *thread*."""
    folder = runs_folder(store, thread)
    paths = [os.path.join(folder, name) for name in list_names(folder) if name.endswith(_ALIVE)]
    paths += [each.alive for each in list_check_runs(store, thread)]
    return any(map(is_held, paths))


def is_empty_and_removed(store: Store, thread: ThreadId) -> bool:
    try:
        os.rmdir(runs_folder(store, thread))
    except OSError:
        return False
    return True


def remove_runs(store: Store, thread: ThreadId) -> None:
    _remove_folder(runs_folder(store, thread))


def _remove_folder(path: str) -> None:
    if _is_flat_and_removed(path):
        return
    import shutil  # noqa: PLC0415 (with bz2 and lzma behind it; few agents make folders)

    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:
        with suppress(OSError):
            _remove_deep(path)


def _is_flat_and_removed(path: str) -> bool:
    """Remove a folder that has only files, as nearly all have; False: something is left."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                # A folder, or what may not be removed, raises an error.
                os.unlink(entry.path)
        os.rmdir(path)
    except FileNotFoundError:
        # A file that went meanwhile may not be the last.
        return not os.path.lexists(path)
    except OSError:
        return False
    return True


def _remove_deep(top: str) -> None:
    """Remove a folder with any number of levels: each inner folder is first moved beside *top*."""
    folders = [top]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{top}.{os.urandom(8).hex()}")
                    os.rename(entry.path, folders[-1])
                else:
                    os.unlink(entry.path)
        os.rmdir(folder)


# The work directory and the log of each thread, which stay on this machine.
#
# A work directory is a small file below `<git dir>/uwf-workdirs/`: as a setting in git config,
# every start would rewrite a file that every start reads, and 200 starting threads would wait for
# its lock.

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


WORKTREES = "uwf-worktrees"
"""The folder, in the git directory, that has one for each thread whose branches work apart."""


def has_files(store: Store, thread: ThreadId) -> bool:
    """Check whether files of *thread*, or of its branches that worked apart, are recorded."""
    folder = os.path.join(store.path, WORKTREES, thread)
    return os.path.exists(folder) or os.path.exists(files_size(store, thread))


def forget_files(store: Store, thread: ThreadId) -> None:
    for path in (
        files_index(store, thread),
        files_size(store, thread),
        store.local_path(UNRECORDED, thread),
        store.local_path(SLOW_TO_RECORD, thread),
    ):
        remove_file(path)
