"""Limited runs: untrusted work in a forked child with limits on time, memory and answer size.

A fork, because nothing inside one Python process stops `"x" * 10**9` or a regular expression that
backtracks for ever (FACTS 8). Memory is limited on Linux only, where /proc tells its use. The child
has one thread: work that waits for a lock which another thread held at the fork ends at the time
limit. No child outlives the call.
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

# Windows has none; there the first lock says that uwf runs in WSL.
with contextlib.suppress(ImportError):
    import resource

_MIB = 1024 * 1024

# The parent kills the child so long after the child's own alarm.
_GRACE_S = 0.5

# Exit statuses of a child without an answer.
_OUT_OF_MEMORY = 81
_NO_ANSWER = 82

# The bases of errors.py have no constructor of their own, so an error can be rebuilt as one.
_KINDS: list[type[UwfError]] = [UwfError, *UwfError.__subclasses__()]
_BASES = {kind.__name__: kind for kind in _KINDS if kind.__module__ == UwfError.__module__}

_ONE_FORK_AT_A_TIME = threading.Lock()


class RunLimits(NamedTuple):
    memory_bytes: int = 256 * _MIB
    """On top of what the process uses already."""

    cpu_s: int = 1
    """Processor time; the kernel counts whole seconds."""

    wall_s: float = 2.0
    answer_bytes: int = 16 * _MIB

    def __str__(self) -> str:
        return (
            f"{self.cpu_s} s of processor time, {self.wall_s:g} s in all, "
            f"{self.memory_bytes // _MIB} MB of memory, {self.answer_bytes // _MIB} MB of answer"
        )


DEFAULT = RunLimits()


def limits_for(size_bytes: int) -> RunLimits:
    """Return the limits of a check of so much JSON: the smaller it is, the sooner they are hit."""
    # 13 MB of small records take 6 s on a slow machine.
    seconds = 1 + size_bytes // _MIB
    return RunLimits(DEFAULT.memory_bytes + 64 * size_bytes, seconds, 2.0 * seconds)


LimitKind = Literal["time", "memory", "answer"]


class LimitHit(Refused):
    """A limited run exceeded a limit. That depends on the machine, so it is no answer."""

    code = "fence-hit"

    def __init__(self, what: str, limit: LimitKind, limits: RunLimits) -> None:
        happened = {
            "time": "took too much time",
            "memory": "took too much memory",
            "answer": "returned too long an answer",
        }[limit]
        super().__init__(
            f"{what} {happened} and was stopped",
            hint=f"make it simpler; it may use {limits}",
            what=what,
            limit=limit,
        )


class LimitedRunDied(Refused):
    """The child of a limited run died without an answer, or could not be started."""

    code = "fence-broken"

    def __init__(self, what: str, happened: str) -> None:
        super().__init__(
            f"{what} returned no answer: {happened}",
            hint="make it simpler, or try again if the machine is short of memory or processes",
            what=what,
            happened=happened,
        )


class LimitedRunBug(Exception):
    """A limited run raised an unexpected exception; the message has the child's trace."""


class _Ending(NamedTuple):
    """What the parent knows about the end of its child."""

    answer: bytes
    overrun: Literal["time", "answer"] | None
    """The limit that the parent enforced."""

    status: int | None
    """Exit status, or a signal's negative number; None if the child was reaped elsewhere."""


def run_limited(
    work: Callable[[], Any], *, limits: RunLimits = DEFAULT, what: str = "the decision"
) -> Any:
    """Return the JSON value that *work* returns, or raise what it raises.

    A `UwfError` is raised again with its message, hint, facts, code and exit status, but as an
    instance of its base in `uwf_git.errors`. *what* names the work in our own errors: LimitHit;
    LimitedRunDied without an answer; LimitedRunBug for another exception, or an answer that is not
    JSON.
    """
    with _signals_blocked() as blocked:
        reading, writing = os.pipe()
        try:
            pid = _fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            raise LimitedRunDied(what, f"no new process ({error.strerror})") from error
        if pid == 0:
            _run_child(work, limits, writing, blocked)
        os.close(writing)
        ending = _await_ending(pid, reading, limits)
    return _judge(ending, limits, what)


@contextlib.contextmanager
def _signals_blocked() -> Iterator[set[int]]:
    """Block signals until the child is gone; yield those that were blocked before.

    Otherwise a Ctrl-C between fork and wait would leave a zombie. Another thread may take a signal
    that is blocked here, and its handler would run in the main thread: there, handlers wait too.
    This takes two seconds at most.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    handlers = {}
    noted: list[int] = []
    if threading.current_thread() is threading.main_thread():
        before = {each: signal.getsignal(each) for each in signal.valid_signals()}
        handlers = {each: handler for each, handler in before.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, lambda number, _frame: noted.append(number))
        yield {int(each) for each in blocked}
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for noted_one in noted:
            signal.raise_signal(noted_one)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _fork() -> int:
    # Python 3.12 warns of a fork with threads (see the header). As an error, the warning would lose
    # us the child's pid. The lock, because two threads in catch_warnings at once may leave the
    # warning switched off.
    with _ONE_FORK_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _await_ending(pid: int, reading: int, limits: RunLimits) -> _Ending:
    """Read the child's answer, kill the child at a limit, and reap it."""
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
    # Both fail only where the process ignores SIGCHLD, so that the kernel reaps.
    if kill_first:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None


def _judge(ending: _Ending, limits: RunLimits, what: str) -> Any:
    debug("GKA6JQE6", "limited run ended", what=what, status=ending.status, overrun=ending.overrun)
    if ending.overrun is not None:
        raise LimitHit(what, ending.overrun, limits)
    status = ending.status
    if status == _OUT_OF_MEMORY:
        raise LimitHit(what, "memory", limits)
    if status in {-signal.SIGALRM, -signal.SIGXCPU}:
        raise LimitHit(what, "time", limits)
    if status is not None and status < 0:
        raise LimitedRunDied(what, f"killed by {signal.Signals(-status).name}")
    try:
        said = json.loads(ending.answer)
    except ValueError:
        raise LimitedRunDied(what, f"it ended with status {status}") from None
    if "bug" in said:
        raise LimitedRunBug(f"{what}:\n{said['bug']}")
    if "error" in said:
        raise _rebuild(**said["error"])
    return said["result"]


def _rebuild(kind: str, base: str, told: dict[str, Any], facts: dict[str, Any]) -> UwfError:
    own = {"code": told["code"], "exit_status": told["exit_status"]}
    error_class = cast("type[UwfError]", type(kind, (_BASES[base],), own))
    return error_class(told["message"], hint=told["hint"], **facts)


# Below: in the child.


def _run_child(
    work: Callable[[], Any], limits: RunLimits, writing: int, blocked: set[int]
) -> NoReturn:
    """Do *work*, write its answer, and exit without unwinding into the parent's frames."""
    status = _NO_ANSWER
    try:
        _set_limits(limits, blocked)
        with open(writing, "wb") as file:
            file.write(_answer(work))
        status = 0
    except MemoryError:
        status = _OUT_OF_MEMORY
    finally:
        # No atexit, no flush, and no `finally` of the parent's frames.
        os._exit(status)


def _set_limits(limits: RunLimits, blocked: set[int]) -> None:
    # The parent's garbage must not be finalised here: it may hold files and locks.
    gc.freeze()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            # Ctrl-C reaches the whole group; the parent handles it.
            signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGALRM, signal.SIGXCPU):
        # The default kills; a Python handler would wait for the C function to return.
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked - {signal.SIGALRM, signal.SIGXCPU})
    signal.setitimer(signal.ITIMER_REAL, limits.wall_s)
    _lower(resource.RLIMIT_CORE, 0)
    # One second between soft and hard: at the hard limit Linux kills without saying why.
    _lower(resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1)
    with contextlib.suppress(OSError):
        # Linux only, where RLIMIT_AS is known to work (FACTS 8).
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
        _lower(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.memory_bytes)


def _lower(limit: int, soft: int, hard: int | None = None) -> None:
    """Set *limit* unless the user's own (`ulimit`) is lower already."""
    old_soft, old_hard = resource.getrlimit(limit)
    new_hard = _lowest(old_hard, soft if hard is None else hard)
    resource.setrlimit(limit, (_lowest(old_soft, soft, new_hard), new_hard))


def _lowest(*limits: int) -> int:
    return min(each for each in limits if each != resource.RLIM_INFINITY)


def _answer(work: Callable[[], Any]) -> bytes:
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
    except BaseException:  # noqa: BLE001 (the parent raises it)
        return json.dumps({"bug": traceback.format_exc()}).encode()
