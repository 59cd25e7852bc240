"""Files of a thread that stay on this machine: work directory, log, and each turn's output.

    <git dir>/uwf/run/<thread>/<commit>/         pid, stdout, stderr, exit (agents/files.py)
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
import stat
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from uwf_git.errors import Conflict
from uwf_git.model.names import Oid, ThreadId, is_oid, is_thread_id
from uwf_git.store.durable import (
    FileMemory,
    find_local,
    join_below,
    list_names,
    read_local,
    remove_file,
    replace_file,
)
from uwf_git.store.locks import (
    HeldFile,
    Holder,
    describe_holder,
    find_file_holder,
    hold_file,
    hold_lock,
    is_held,
    this_process,
)
from uwf_git.store.objects.commit import check_clock
from uwf_git.store.store import Store
from uwf_git.surroundings import read_process

if TYPE_CHECKING:
    from uwf_git.store.git.program import Kept


_RUN = "run"
_REMOVED = ".removed"
_ALIVE, _FILES, _CHECKS = ".alive", ".files", ".checks"

Note = Literal["turn", "stopped", "env", "prints", "output", "report", "clock", "before"]
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
            return read_local(f"{self.path}.{note}").decode()
        return ""

    def write(self, note: Note, text: str, *, mode: int = 0o666) -> None:
        content = text.encode(errors="replace")
        # A power loss ends the agent too, so these files need not survive one.
        replace_file(f"{self.path}.{note}", content, durable=False, mode=mode)

    def begin(self, turn: str) -> None:
        for folder in (self.path, self.step_dir, self.path + _CHECKS):
            remove_folder(folder)
        for note in get_args(Note):
            if note != "before":
                remove_file(f"{self.path}.{note}")
        self.write("turn", turn)

    def read_stop_reason(self) -> str | None:
        # With its line end it is there even if it is empty.
        told = self.read("stopped")
        return told.rstrip("\n") if told else None

    def write_stop_reason(self, reason: str) -> None:
        """Write why the agent is being stopped, for the engine that records the run."""
        self.write("stopped", f"{reason[:MAX_REASON]}\n")

    def remove(self) -> None:
        # Moved away first: a daemon that the agent left behind may still make files there.
        with suppress(OSError):
            os.rename(self.step_dir, self.path + _REMOVED)
        folders = (self.path, self.step_dir, self.path + _REMOVED, self.path + _CHECKS)
        for folder in folders:
            remove_folder(folder)
        for suffix in (_ALIVE, *(f".{note}" for note in get_args(Note))):
            remove_file(self.path + suffix)


def get_run_dir(store: Store, thread: ThreadId, started_after: Oid) -> RunDir:
    """Return the run directory of the turn that began after a commit; it need not exist."""
    return RunDir(store.local_path(_RUN, thread, started_after))


def runs_folder(store: Store, thread: ThreadId) -> str:
    """Return the folder of the run directories of *thread*; it need not exist."""
    return store.local_path(_RUN, thread)


def has_runs(store: Store, thread: ThreadId) -> bool:
    # Asked of each thread of a list, which another user's link must not end.
    with suppress(OSError):
        return stat.S_ISDIR(os.lstat(os.path.join(store.path, "uwf", _RUN, thread)).st_mode)
    return False


def list_run_dirs(store: Store, thread: ThreadId) -> list[RunDir]:
    """List the run directories of *thread*, one for each turn that is not recorded yet."""
    folder = runs_folder(store, thread)
    return [get_run_dir(store, thread, Oid(name)) for name in list_names(folder) if is_oid(name)]


def list_check_runs(store: Store, thread: ThreadId) -> list[RunDir]:
    """List the directories of the checks of *thread* that have begun and are not recorded yet."""
    folder = runs_folder(store, thread)
    folders = (name for name in list_names(folder) if name.endswith(_CHECKS))
    return [each for name in folders for each in _list_checks(os.path.join(folder, name))]


def _list_checks(folder: str) -> list[RunDir]:
    names = () if os.path.islink(folder) else list_names(folder)
    numbers = sorted(int(name) for name in names if name.isdecimal())
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
    with suppress(OSError):
        os.rmdir(runs_folder(store, thread))
        return True
    return False


def remove_runs(store: Store, thread: ThreadId) -> None:
    remove_folder(runs_folder(store, thread))


def remove_folder(path: str) -> None:
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
        if os.path.islink(path):
            os.unlink(path)
            return True
        with _entered(path) as (folder, entries):
            for entry in entries:
                # A folder, or what may not be removed, raises an error.
                os.unlink(entry.name, dir_fd=folder)
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
        with _entered(folder) as (descriptor, entries):
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{top}.{os.urandom(8).hex()}")
                    os.rename(entry.name, folders[-1], src_dir_fd=descriptor)
                else:
                    os.unlink(entry.name, dir_fd=descriptor)
        os.rmdir(folder)


@contextmanager
def _entered(path: str) -> Iterator[tuple[int, Iterator[os.DirEntry[str]]]]:
    """Yield the descriptor of a folder, and what is in it; never of one that a link leads to."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with os.scandir(folder) as entries:
            yield folder, entries
    finally:
        os.close(folder)


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
    told = {ThreadId(name): read_local(os.path.join(path, name)) for name in names}
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
        from uwf_git.store.git.program import NOTHING_KEPT, keep_settings  # noqa: PLC0415 (only a start needs it)

        keep_settings(kept, path, known=known or NOTHING_KEPT)
    set_workdir(store, thread, path)


def settings_file(store: Store, thread: ThreadId) -> str | None:
    return store.user_path(SETTINGS, thread)


def find_workdir(store: Store, thread: ThreadId) -> str | None:
    """Return the work directory of *thread*; None if this machine has no record of it."""
    return _WORKDIRS.read(_file(store, thread), _read_workdir)


def _read_workdir(path: str) -> str | None:
    return os.fsdecode(read_local(path).removesuffix(b"\n")) or None


def forget_workdir(store: Store, thread: ThreadId) -> None:
    """Remove the record of the work directory of *thread*, if no files are recorded there."""
    if not has_files(store, thread):
        remove_file(_file(store, thread))


def forget_settings(store: Store, thread: ThreadId) -> None:
    """Remove what is kept of the settings that git had when *thread* began."""
    if (path := settings_file(store, thread)) is not None:
        remove_file(path)


def workdirs_folder(store: Store) -> str:
    return join_below(store.path, _FOLDER)


def _file(store: Store, thread: ThreadId) -> str:
    return os.path.join(workdirs_folder(store), thread)


LOGS = "logs"


def log_path(store: Store, thread: ThreadId) -> str:
    return store.local_path(LOGS, thread + ".log")


def forget_log(store: Store, thread: ThreadId) -> None:
    remove_file(log_path(store, thread))


# What the chain of a thread's files needs here: git's index of it, how many bytes it has, which
# commits of HEAD stood for the files before it began, and after which turns nobody knows them.

FILES = "files"


def files_index(store: Store, thread: ThreadId) -> str:
    return store.local_path(FILES, thread + ".index")


def files_size(store: Store, thread: ThreadId) -> str:
    return store.local_path(FILES, thread + ".size")


def files_heads(store: Store, thread: ThreadId) -> str:
    return store.local_path(FILES, thread + ".heads")


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
        files_heads(store, thread),
        store.local_path(UNRECORDED, thread),
        store.local_path(SLOW_TO_RECORD, thread),
    ):
        remove_file(path)


# A kill that is under way: why the thread is to end, in `<git dir>/uwf/locks/<id>.kill`.
#
# Written under ``lock_stop`` before an agent is stopped. The process that kills may be a child of
# that agent and end with it; the request stays, and whoever finds the lock free ends the thread.

_KILL, _JOBS = ".kill", ".jobs"


def write_kill_request(store: Store, thread: ThreadId, reason: str) -> None:
    """Record that *thread* is to end; *reason* may be empty."""
    # A power loss ends the agent too, so this file need not survive one.
    replace_file(_path(store, thread, _KILL), reason.encode(errors="replace"), durable=False)


def find_kill_request(store: Store, thread: ThreadId) -> str | None:
    """Return why *thread* is to end; None if nobody ends it."""
    path = _path(store, thread, _KILL)
    # Each step asks twice, and next to none finds a request.
    told = find_local(path) if os.path.lexists(path) else None
    return None if told is None else told.decode(errors="replace")


def forget_kill_request(store: Store, thread: ThreadId) -> None:
    remove_file(_path(store, thread, _KILL))


def keep_jobs(store: Store, thread: ThreadId, jobs: int) -> None:
    """Remember for a drive that goes on how many branches this drive works on at once."""
    if find_jobs(store, thread) != jobs:
        replace_file(_path(store, thread, _JOBS), str(jobs).encode(), durable=False)


def find_jobs(store: Store, thread: ThreadId) -> int | None:
    """Return the ``keep_jobs`` of the last drive of *thread* here; None before the first."""
    with suppress(ValueError):
        return int(read_local(_path(store, thread, _JOBS)))
    return None


# Hold a thread, so that one engine at a time works on it.
#
# The lock files of a thread below `<git dir>/uwf/locks/`:
#
#     <id>        held by the engine that takes a step
#     <id>.drive  held by the process that drives the thread, also between steps
#     <id>.stop   held by the process that ends the thread: no step begins
#     <id>.kill   no lock: why the thread is to end (above)
#     <id>.jobs   no lock: how many branches the last drive worked on at once
#
# Correctness is left to the compare-and-swap of the ref; the lock avoids agent runs whose result
# would be lost, and names who is at work.

_PATIENCE_S = 0.25

_STEP, _DRIVE, _STOP = "", ".drive", ".stop"


class ThreadBusy(Conflict):
    code = "thread-busy"

    def __init__(self, thread: ThreadId, holder: Holder, *, hint: str = "") -> None:
        who = describe_holder(holder) or "another process works on it"
        super().__init__(
            f"thread {thread} is busy ({who})",
            hint=_continue_hint(holder)
            or hint
            or f"try again when it is done: `uwf thread wait {thread}`; "
            f"`uwf thread pause {thread}` stops it after this step, --now at once",
            thread=thread,
            holder=holder,
        )


def is_stopped(holder: Holder) -> bool:
    """Return whether the *holder* is a stopped process (SIGSTOP, Ctrl-Z), which ends nothing."""
    process = read_process(holder["pid"]) if isinstance(holder.get("pid"), int) else None
    return process is not None and process.is_stopped and process.start == holder.get("start")


def _continue_hint(holder: Holder) -> str:
    if not is_stopped(holder):
        return ""
    pid = holder["pid"]
    return (
        f"process {pid} is stopped (SIGSTOP, Ctrl-Z): `kill -CONT {pid}` lets it "
        f"go on, and `kill -KILL {pid}` ends it"
    )


class ThreadLock(NamedTuple):
    file: HeldFile
    holder: Holder
    path: str

    def say(self, role: str, agent: str = "") -> None:
        self.write({"role": role, "agent": agent})

    def write(self, said: Holder) -> None:
        self.holder.update(said)
        self.file.write(self.holder)


_HELD = threading.local()
"""The locks that a thread of Python holds, in its attribute ``locks``."""


@contextmanager
def say_signing(program: str) -> Iterator[None]:
    locks: list[ThreadLock] = list(getattr(_HELD, "locks", ()))
    for lock in locks:
        lock.write({"signing": program})
    try:
        yield
    finally:
        for lock in locks:
            lock.write({"signing": ""})


Locked = AbstractContextManager[ThreadLock]


def lock_thread(store: Store, thread: ThreadId, *, since_ms: int) -> Locked:
    """Hold *thread* while working on it; raise ThreadBusy if a living process holds it."""
    check_clock(since_ms)
    return _lock(store, thread, _STEP, since_ms)


def lock_drive(store: Store, thread: ThreadId, *, since_ms: int) -> Locked:
    """Hold the right to drive *thread*, step after step."""
    return _lock(store, thread, _DRIVE, since_ms)


def lock_stop(store: Store, thread: ThreadId, *, since_ms: int) -> Locked:
    """Let no step of *thread* begin meanwhile."""
    return _lock(store, thread, _STOP, since_ms)


def lock_briefly(store: Store, thread: ThreadId) -> AbstractContextManager[HeldFile]:
    """Hold *thread* for a moment without a named holder, so that others wait for it."""
    return _hold(store, thread, _STEP, {})


@contextmanager
def _lock(store: Store, thread: ThreadId, suffix: str, since_ms: int) -> Iterator[ThreadLock]:
    holder = this_process(since_ms) | {"role": "", "agent": ""}
    with _hold(store, thread, suffix, holder) as file:
        lock = ThreadLock(file, holder, _path(store, thread, suffix))
        held: list[ThreadLock] = _HELD.__dict__.setdefault("locks", [])
        held.append(lock)
        try:
            yield lock
        finally:
            held.remove(lock)


def _hold(
    store: Store, thread: ThreadId, suffix: str, holder: Holder
) -> AbstractContextManager[HeldFile]:
    path = _path(store, thread, suffix)
    return hold_file(path, holder, patience_s=_PATIENCE_S, busy=partial(ThreadBusy, thread))


def find_holder(store: Store, thread: ThreadId) -> dict[str, Any] | None:
    return find_file_holder(_path(store, thread, _STEP))


def is_held_here(store: Store, thread: ThreadId) -> bool:
    """Return whether this thread of Python takes a step of *thread*: its player runs here."""
    path = _path(store, thread, _STEP)
    return any(lock.path == path for lock in getattr(_HELD, "locks", ()))


def find_driver(store: Store, thread: ThreadId) -> dict[str, Any] | None:
    return find_file_holder(_path(store, thread, _DRIVE))


def is_being_stopped(store: Store, thread: ThreadId) -> bool:
    return find_file_holder(_path(store, thread, _STOP)) is not None


def check_not_stopped(store: Store, thread: ThreadId) -> None:
    if is_being_stopped(store, thread):
        raise ThreadBusy(
            thread, {}, hint=f"it is being ended; `uwf thread show {thread}` tells by whom"
        )


def has_lock_file(store: Store, thread: ThreadId) -> bool:
    """Check whether a step of *thread* has left its lock file; it goes when the thread ends."""
    return os.path.lexists(_path(store, thread, _STEP))


def forget_lock(store: Store, thread: ThreadId) -> None:
    """Remove the lock files of a thread that has ended; the caller holds the lock of steps."""
    # A process that waits for a removed file finds the name gone, and opens the path again.
    # The file of steps goes last: gc finds by it what a kill in between leaves.
    forget_kill_request(store, thread)
    for suffix in (_JOBS, _DRIVE, _STOP, _STEP):
        remove_file(_path(store, thread, suffix))


def _path(store: Store, thread: ThreadId, suffix: str) -> str:
    # Asked as often as `has_runs`; no lock is a link. Behind a link of the folder only names of
    # threads are touched.
    return os.path.join(store.path, "uwf", "locks", thread) + suffix


# A cheap first check for work on a thread; commands/agent_run/runs.py finds the worker, but imports
# much more.

RUNNING = "running"
"""The shown status of a ready thread that is being worked on; it is never stored."""


def may_be_active(store: Store, thread: ThreadId) -> bool:
    lock = _path(store, thread, _STEP)
    # A lock is emptied when it is released, so most threads have empty lock files.
    return _has_content(lock) or _has_content(lock + _DRIVE) or has_runs(store, thread)


def list_possibly_active(store: Store) -> list[ThreadId]:
    folder = store.local_path("locks")
    locked = {
        ThreadId(thread)
        for name in list_names(folder)
        if is_thread_id(thread := name.removesuffix(_DRIVE))
        and _has_content(os.path.join(folder, name))
    }
    return sorted(locked.union(list_threads_with_runs(store)), reverse=True)


def _has_content(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        # It is gone, or a link to itself.
        return False
    return found.st_size > 0 or stat.S_ISDIR(found.st_mode)
