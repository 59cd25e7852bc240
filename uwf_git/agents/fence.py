"""The fence: work that may not be trusted with time or memory, done in a forked child.

Owns: the limits, the child's short life, and the pipe by which it answers.
Knows nothing of: what the work is; it is handed a function and hands back JSON.
Always true: the answer is the work's own or there is none, since a limit that was hit is an
    error; no child outlives the call, no descriptor stays open; nothing of the parent is
    flushed, finished or cleaned up a second time in the child.

A fork, because nothing inside one Python process stops `"x" * 10**9` or a regular expression
that backtracks for ever (FACTS 8). Memory is limited where /proc tells how much is in use (Linux);
elsewhere time alone is. Where there is no fork (Windows), the work runs here and without limits.
The child has one thread, whatever the parent had: work that waits for a lock which another
thread held at that moment ends at the time limit.
"""

import contextlib
import gc
import json
import os
import select
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, cast

from uwf_git.debug_log import debug
from uwf_git.errors import Refused, UwfError

try:
    import resource
except ImportError:  # pragma: no cover (Windows: no limits, and no fork that would need them)
    # A module by type; None says that it is not there.
    resource = None  # type: ignore[assignment]

_MIB = 1024 * 1024

# How much later than the child's own alarm the parent stops believing in it.
_GRACE_S = 0.5

# Exit statuses of a child that could not say more. An empty-handed child writes nothing.
_OUT_OF_MEMORY = 81
_SPEECHLESS = 82

# The bases of errors.py have no constructor of their own, so an error can be told again as one.
_KINDS: list[type[UwfError]] = [UwfError, *UwfError.__subclasses__()]
_BASES = {kind.__name__: kind for kind in _KINDS if kind.__module__ == UwfError.__module__}

_ONE_FORK_AT_A_TIME = threading.Lock()


class FenceLimits(NamedTuple):
    """What fenced work may use."""

    memory_bytes: int = 256 * _MIB
    """On top of what the process has already."""

    cpu_s: int = 1
    """Processor time; the kernel counts whole seconds."""

    wall_s: float = 2.0
    answer_bytes: int = 16 * _MIB

    def __str__(self) -> str:
        return (
            f"{self.cpu_s} s of processor time, {self.wall_s:g} s in all, "
            f"{self.memory_bytes // _MIB} MB of memory, {self.answer_bytes // _MIB} MB of answer"
        )


DEFAULT = FenceLimits()

Limit = Literal["time", "memory", "answer"]


class FenceHit(Refused):
    """Fenced work wanted more than it may have. That depends on the machine: it is no answer."""

    code = "fence-hit"

    def __init__(self, what: str, limit: Limit, limits: FenceLimits) -> None:
        happened = {
            "time": "took too much time",
            "memory": "took too much memory",
            "answer": "gave too long an answer",
        }[limit]
        super().__init__(
            f"{what} {happened} and was stopped",
            hint=f"make it simpler; it may use {limits}",
            what=what,
            limit=limit,
        )


class FenceBroken(Refused):
    """Fenced work took its whole process down, or never got one."""

    code = "fence-broken"

    def __init__(self, what: str, happened: str) -> None:
        super().__init__(
            f"{what} gave no answer: {happened}",
            hint="make it simpler, or try again if the machine is short of something",
            what=what,
            happened=happened,
        )


class FencedBug(Exception):
    """Fenced work raised what nobody foresaw; the child's own trace is in the message."""


class _Ending(NamedTuple):
    """All that the parent learns of its child."""

    answer: bytes
    overrun: Literal["time", "answer"] | None
    """Which limit the parent had to enforce itself."""

    status: int | None
    """Exit status, or a signal's negative number; None if somebody else reaped the child."""


def run_fenced(
    work: Callable[[], Any], *, limits: FenceLimits = DEFAULT, what: str = "the decision"
) -> Any:
    """Return what *work* returns, as JSON would give it back, or raise what it raises.

    A `UwfError` comes out with its message, hint, facts, code and exit status, as an instance of
    the same base in `uwf_git.errors`; its own class stays behind the fence. *what* names the
    work in our errors.

    Raises:
        FenceHit: *work* wanted more than *limits*.
        FenceBroken: the child died without an answer, or could not be started.
        FencedBug: *work* raised something that is no `UwfError`, or returned what is not JSON.
    """
    if not hasattr(os, "fork"):
        return _run_unfenced(work, limits, what)
    with _signals_held() as held:
        reading, writing = os.pipe()
        try:
            pid = _fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            raise FenceBroken(what, f"no new process ({error.strerror})") from error
        if pid == 0:
            _be_the_child(work, limits, writing, held)
        os.close(writing)
        ending = _await_ending(pid, reading, limits)
    return _judge(ending, limits, what)


def _run_unfenced(work: Callable[[], Any], limits: FenceLimits, what: str) -> Any:
    try:
        return json.loads(json.dumps(work()))
    except MemoryError:
        raise FenceHit(what, "memory", limits) from None


@contextlib.contextmanager
def _signals_held() -> Iterator[set[int]]:
    """Let signals wait until the child is gone; yield which were held before.

    Otherwise a Ctrl-C between fork and wait would leave a zombie. Two seconds at most.
    """
    held = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield {int(each) for each in held}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _fork() -> int:
    # Python 3.12 warns of forking with threads; the header says what comes of it. Turned into an
    # error, the warning would lose us the child's pid. The lock, because two threads in
    # catch_warnings at once may leave the warning switched off; the child lets go of its own.
    with _ONE_FORK_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _await_ending(pid: int, reading: int, limits: FenceLimits) -> _Ending:
    """Read all that the child says, end it if it says or takes too much, and reap it."""
    ended = False
    answer = bytearray()
    overrun: Literal["time", "answer"] | None = "time"
    try:
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        deadline = time.monotonic() + limits.wall_s + _GRACE_S
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            chunk = os.read(reading, 1 << 16)
            if not chunk:
                ended, overrun = True, None
                break
            answer += chunk
            if len(answer) > limits.answer_bytes:
                overrun = "answer"
                break
    finally:
        os.close(reading)
        status = _reap(pid, kill_first=not ended)
    return _Ending(bytes(answer), overrun, status)


def _reap(pid: int, *, kill_first: bool) -> int | None:
    # Both can only fail where the process ignores SIGCHLD, so that the kernel reaps for it.
    if kill_first:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return None


def _judge(ending: _Ending, limits: FenceLimits, what: str) -> Any:
    debug("GKA6JQE6", "fence left", what=what, status=ending.status, overrun=ending.overrun)
    if ending.overrun is not None:
        raise FenceHit(what, ending.overrun, limits)
    status = ending.status
    if status == _OUT_OF_MEMORY:
        raise FenceHit(what, "memory", limits)
    if status in {-signal.SIGALRM, -signal.SIGXCPU}:
        raise FenceHit(what, "time", limits)
    if status is not None and status < 0:
        raise FenceBroken(what, f"killed by {signal.Signals(-status).name}")
    try:
        said = json.loads(ending.answer)
    except ValueError:
        raise FenceBroken(what, f"it ended with status {status}") from None
    if "bug" in said:
        raise FencedBug(f"{what}:\n{said['bug']}")
    if "error" in said:
        raise _retold(**said["error"])
    return said["result"]


def _retold(kind: str, base: str, told: dict[str, Any], facts: dict[str, Any]) -> UwfError:
    own = {"code": told["code"], "exit_status": told["exit_status"]}
    error_class = cast("type[UwfError]", type(kind, (_BASES[base],), own))
    return error_class(told["message"], hint=told["hint"], **facts)


# Everything below runs in the child.


def _be_the_child(
    work: Callable[[], Any], limits: FenceLimits, writing: int, held: set[int]
) -> NoReturn:
    """Do *work*, say what came of it, and be gone without unwinding into the parent's frames."""
    status = _SPEECHLESS
    try:
        _shut_in(limits, held)
        _say(writing, _outcome(work))
        status = 0
    except MemoryError:
        status = _OUT_OF_MEMORY
    finally:
        # Whatever is in flight here is dropped with the process: no atexit, no flush, no
        # `finally` of the parent's.
        os._exit(status)


def _shut_in(limits: FenceLimits, held: set[int]) -> None:
    # The parent's garbage is the parent's to finalise: it may hold files and locks.
    gc.freeze()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            # Ctrl-C reaches the whole group; what to do about it is the parent's decision.
            signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGALRM, signal.SIGXCPU):
        # The default kills; a Python handler would wait for the C function that has to be ended.
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, held - {signal.SIGALRM, signal.SIGXCPU})
    signal.setitimer(signal.ITIMER_REAL, limits.wall_s)
    _lower(resource.RLIMIT_CORE, 0)
    # One second between soft and hard: at the hard limit Linux kills without saying why.
    _lower(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1)
    with contextlib.suppress(OSError):
        # Only Linux tells it, and only there the limit is known to be kept (FACTS 8).
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
        _lower(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.memory_bytes)


def _lower(limit: int, soft: int, hard: int | None = None) -> None:
    """Set *limit* unless the user's own (`ulimit`) is lower already."""
    old_soft, old_hard = resource.getrlimit(limit)
    new_hard = _lowest(old_hard, soft if hard is None else hard)
    resource.setrlimit(limit, (_lowest(old_soft, soft, new_hard), new_hard))


def _lowest(*limits: int) -> int:
    return min(each for each in limits if each != resource.RLIM_INFINITY)


def _outcome(work: Callable[[], Any]) -> bytes:
    try:
        return json.dumps({"result": work()}).encode()
    except MemoryError:
        raise
    except UwfError as error:
        base = next(kind.__name__ for kind in type(error).__mro__ if kind in _BASES.values())
        told = {
            "message": error.message,
            "hint": error.hint,
            "code": error.code,
            "exit_status": error.exit_status,
        }
        said = {"kind": type(error).__name__, "base": base, "told": told, "facts": error.facts}
        return json.dumps({"error": said}, default=str).encode()
    except BaseException:  # noqa: BLE001 (told to the parent, who raises it)
        return json.dumps({"bug": traceback.format_exc()}).encode()


def _say(writing: int, answer: bytes) -> None:
    left = memoryview(answer)
    while left:
        left = left[os.write(writing, left) :]
