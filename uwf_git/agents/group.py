"""Process groups: signal a whole group, wait for its end, and what is left behind."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from uwf_git.errors import Refused
from uwf_git.surroundings import Lazy, Process, list_processes, read_name

if TYPE_CHECKING:
    from concurrent import futures as pools
    from concurrent.futures import Future
else:
    pools = Lazy("concurrent.futures")  # with logging behind it; few threads have branches


# Note SIGTERM, SIGINT and SIGHUP instead of ending at once; only in the main thread.


@contextmanager
def deferred_signals(noted: list[int]) -> Iterator[None]:
    """Append received signals to *noted*, to end a program first; restore the handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)

    ending = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [(each, signal.signal(each, note)) for each in ending]
    try:
        yield
    finally:
        for number, action in before:
            signal.signal(number, signal.SIG_DFL if action is None else action)


# Watch a program until it ends, without asking for its end again and again.

_FORWARD_S = 0.05
"""How often output is forwarded and limits are checked; the end itself is not polled."""


@contextmanager
def watched(
    start: Callable[[int], "subprocess.Popen[bytes]"],
) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Start a program by *start*, whose argument is a pipe for the program to hold.

    Yields:
        The program, and a descriptor that hangs up when the program has ended.
    """
    ended, held = os.pipe()
    try:
        try:
            child = start(held)
        finally:
            os.close(held)
        yield child, ended
    finally:
        os.close(ended)


def find_deadline(limit_s: float | None) -> float:
    return float("inf") if limit_s is None else time.monotonic() + limit_s


def tick_ms(*deadlines: float) -> float:
    """Return how long to wait for the end of a program until its output is forwarded again."""
    left_s = min(deadlines) - time.monotonic()
    return max(0.0, min(_FORWARD_S, left_s)) * 1000


# Cancel the work of one thread of Python from another: Ctrl-C reaches only the main thread.

Item = TypeVar("Item")
Result = TypeVar("Result")

_OF_THREAD = threading.local()

_WAKE_S = 0.5


@contextmanager
def cancellable(cancelled: threading.Event) -> Iterator[None]:
    """Let *cancelled* interrupt what this thread of Python does, where it calls ``check``."""
    before = getattr(_OF_THREAD, "cancelled", None)
    _OF_THREAD.cancelled = cancelled
    try:
        yield
    finally:
        _OF_THREAD.cancelled = before


def check_cancelled() -> None:
    """Raise KeyboardInterrupt, as Ctrl-C does, if this thread of Python is to stop."""
    cancelled = getattr(_OF_THREAD, "cancelled", None)
    if cancelled is not None and cancelled.is_set():
        raise KeyboardInterrupt


def wait_for_one(futures: Collection["Future[Result]"]) -> set["Future[Result]"]:
    """Return the *futures* that are done, as soon as any is; Ctrl-C is noticed meanwhile.

    The kernel may give the signal to another thread, and Python handles it in the main thread only:
    so the main thread wakes now and then.
    """
    while True:
        done = pools.wait(futures, timeout=_WAKE_S, return_when=pools.FIRST_COMPLETED).done
        if done or not futures:
            return done
        check_cancelled()


def run_at_once(
    work: Callable[[Item], Result], items: Sequence[Item], *, jobs: int
) -> list[Result]:
    """Return what *work* returns for *items*, *jobs* at a time; Ctrl-C interrupts all.

    Each runs in a thread of Python: they wait for agents.
    """
    if len(items) == 1:
        return [work(items[0])]
    cancelled = threading.Event()

    def run(item: Item) -> Result:
        with cancellable(cancelled):
            return work(item)

    with pools.ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        futures = [pool.submit(run, item) for item in items]
        try:
            return [wait_for_one([future]).pop().result() for future in futures]
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


# Process groups: signal a whole group, and wait until the group has ended.
#
# A group is signalled only while its id cannot be reused: while its leader is not reaped, or
# while any member lives.

# Most groups end at once, and every step waits for this.
_FIRST_TICK_S = 0.001
_LONGEST_TICK_S = 0.01
TEAR_DOWN_S = 2.0


def stop_group(leader: "subprocess.Popen[bytes]", *, grace_s: float) -> None:
    """End the group that *leader* leads: SIGTERM, wait at most *grace_s*, SIGKILL.

    Raises:
        KeyboardInterrupt: Ctrl-C came during the wait; the group was killed at once.
    """
    if leader.returncode is not None and not _lives(leader.pid):
        return
    is_over = False
    try:
        ask_group(leader.pid)
        is_over = _ended(leader, within_s=grace_s)
    finally:
        if not is_over:
            kill_group(leader.pid)
            leader.wait()
            _ended(leader, within_s=TEAR_DOWN_S)


def ask_group(group: int) -> None:
    """Send SIGTERM to a group; the caller knows that its id was not reused."""
    _signal_group(group, signal.SIGTERM)
    # A stopped process handles SIGTERM only when it is continued.
    _signal_group(group, signal.SIGCONT)


def leave_group(group: int, lock_path: str) -> None:
    """Leave *group* if we belong to it, and close the lock of its run that we inherited.

    A command that ends the agent it was called by would otherwise end itself before its work is
    done. The leader of a group cannot leave it.
    """
    if os.getpgrp() != group or os.getpid() == group:
        return
    os.setpgid(0, 0)
    # The engine takes an agent to be at work while the lock is open.
    with suppress(OSError):
        lock = os.stat(lock_path)
        for name in os.listdir("/dev/fd"):
            with suppress(OSError):
                if os.path.samestat(os.fstat(int(name)), lock):
                    os.close(int(name))


def kill_group(group: int) -> None:
    """Send SIGKILL to a group; the caller knows that its id was not reused."""
    _signal_group(group, signal.SIGKILL)


def _ended(leader: "subprocess.Popen[bytes]", *, within_s: float) -> bool:
    # poll() reaps the leader; as a zombie it would remain a member.
    if leader.poll() is None or _exists(leader.pid):
        # Shorter than a search through /proc, and mostly enough.
        time.sleep(_FIRST_TICK_S)
    return has_ended(lambda: leader.poll() is None or _lives(leader.pid), within_s=within_s)


def has_ended(
    lives: Callable[[], bool], *, within_s: float, longest_tick_s: float = _LONGEST_TICK_S
) -> bool:
    """Return whether what *lives* has ended within so many seconds."""
    deadline = time.monotonic() + within_s
    tick_s = _FIRST_TICK_S
    while lives():
        if time.monotonic() >= deadline:
            return False
        time.sleep(tick_s)
        tick_s = min(2 * tick_s, longest_tick_s)
    return True


def _signal_group(group: int, number: signal.Signals) -> None:
    # Darwin refuses with EPERM where Linux finds no process: when only zombies are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _lives(group: int) -> bool:
    return _exists(group) and list_members(group) != []


def list_members(group: int) -> list[Process] | None:
    """List the living members of a group; None where there is no /proc.

    Zombies are left out: where the first process of a container reaps no orphans, they stay for
    ever, and kill(2) with signal 0 still finds them.
    """
    processes = list_processes()
    if processes is None:
        return None
    return [each for each in processes if each.group == group and not each.has_ended]


# What has begun to end gets this long; few agents leave anything.
_LEAVING_S = 0.1


def name_left(group: int) -> tuple[str, ...]:
    """Name who still runs in a *group* whose leader has ended: ``sleep (4711)``."""
    if not _exists(group):
        return ()
    time.sleep(_LEAVING_S)
    return tuple(f"{read_name(each.pid)} ({each.pid})" for each in list_members(group) or ())


# Start a program that outlives us and our terminal.
#
# It gets a session of its own, no stdin, and a log file to which its output is appended.


def _not_detached(what: str, problem: str) -> Refused:
    return Refused(
        f"cannot start in the background: {what}: {problem}",
        code="not-detached",
        hint="check free disk space, and the permissions of the store",
        path=what,
    )


# Pids of children that were let go. An ended one stays a zombie until it is reaped.
_LET_GO: list[int] = []


class Detached:
    def __init__(self, child: "subprocess.Popen[bytes]", begun: int) -> None:
        self._child = child
        self.pid = child.pid
        self.begun = begun
        """Where in the log its output begins."""

    def find_status(self) -> int | None:
        """Return its exit status (negative: the signal that ended it); None while it runs."""
        return self._child.poll()

    def let_go(self) -> None:
        """Stop watching it; if it ends before us, the next ``spawn_detached`` reaps it."""
        if self._child.poll() is None:
            _LET_GO.append(self.pid)
            # Python warns of a child that was not waited for.
            self._child.returncode = 0


class DetachRequest(NamedTuple):
    argv: Sequence[str]
    environment: Mapping[str, str]
    workdir: str
    log: str
    """The file for its stdout and stderr; it is created if missing."""


def spawn_detached(request: DetachRequest) -> Detached:
    """Start a program that goes on when we end."""
    _reap_ended()
    try:
        os.makedirs(os.path.dirname(request.log), exist_ok=True)
        # Readable by this user only: agents may print confidential work.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with suppress(FileNotFoundError):
            # Another user's: of an earlier run, or put there to be read.
            if os.lstat(request.log).st_uid != os.geteuid():
                os.unlink(request.log)
        log = os.open(request.log, flags, 0o600)
        begun = os.fstat(log).st_size
    except OSError as error:
        raise _not_detached(request.log, error.strerror or str(error)) from error
    try:
        child = subprocess.Popen(
            request.argv,
            env=dict(request.environment),
            cwd=request.workdir,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return Detached(child, begun)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise _not_detached(request.argv[0], problem) from error
    finally:
        os.close(log)


def _reap_ended() -> None:
    """Reap the children that have ended since they were let go."""
    for pid in tuple(_LET_GO):
        # It was reaped elsewhere, or the process ignores SIGCHLD.
        with suppress(ChildProcessError):
            if not os.waitpid(pid, os.WNOHANG)[0]:
                continue
        # Another Python thread may have removed it.
        with suppress(ValueError):
            _LET_GO.remove(pid)
