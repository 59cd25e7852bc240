"""Run the program that an adapter drives, to its end.

When ``run_nested`` returns or raises, nothing that the program started runs any more: its process
group is ended, then whatever left the group; it cannot outlive us either (the watchdog below).
Input and output are files, so no pipe can fill and no daemon can hold us up.
"""

import ctypes
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import IO, Literal, NamedTuple, cast

from uwf_git.agents.command_line import OnOutput
from uwf_git.agents.files import Heard, Outputs, create_output, forward
from uwf_git.agents.group import (
    TEAR_DOWN_S,
    deferred_signals,
    find_deadline,
    stop_group,
    tick_ms,
    watched,
)
from uwf_git.surroundings import LOCAL_VARIABLES, list_processes

# Find and end the processes that a program left behind.
#
# opencode and gemini start every tool in a session of its own, which a signal to their group does
# not reach, and a daemon forks twice to lose its parent. As child subreaper (prctl(2), Linux) we
# become their parent. Only descendants of this process are signalled, and no child that was there
# before. Without /proc nothing is found, and only the process group can be ended.

_PR_SET_CHILD_SUBREAPER = 36
_TICK_S = 0.01


class Orphans:
    """The processes that become our children from now on because their parent ended."""

    def __init__(self) -> None:
        self._are_ours = _set_subreaper(is_on=True)
        self._known: set[int] = set()
        if self._are_ours and _has_children():
            self._known = {
                each.pid for each in list_processes() or () if each.parent == os.getpid()
            }

    def close(self) -> None:
        if self._are_ours:
            _set_subreaper(is_on=False)

    def keep(self, pid: int) -> None:
        """Do not end *pid*, a child that was started since."""
        self._known.add(pid)

    def end(self, *, grace_s: float) -> None:
        """End orphans and their descendants: SIGTERM, wait at most *grace_s*, SIGKILL."""
        if not self._are_ours:
            return
        killing_from = time.monotonic() + grace_s
        asked: set[int] = set()
        while living := self._living():
            now = time.monotonic()
            if now >= killing_from + TEAR_DOWN_S:
                return
            for pid in living:
                if now >= killing_from:
                    _send(pid, signal.SIGKILL)
                elif pid not in asked:
                    asked.add(pid)
                    _send(pid, signal.SIGTERM)
                    # A stopped process handles SIGTERM only when it is continued.
                    _send(pid, signal.SIGCONT)
            time.sleep(_TICK_S)

    def _living(self) -> set[int]:
        """Return the orphans and descendants that run, and reap those that ended."""
        if not _has_children():
            return set()
        processes = list_processes() or []
        ours = {os.getpid()}
        found: set[int] = set()
        while ours:
            born = {each for each in processes if each.parent in ours}
            born = {each for each in born if each.pid not in self._known | found}
            ours = {each.pid for each in born}
            found |= ours
        for each in processes:
            if each.pid in found and each.has_ended:
                found.remove(each.pid)
                if each.parent == os.getpid():
                    with suppress(ChildProcessError):
                        os.waitpid(each.pid, os.WNOHANG)
        return found


def _set_subreaper(*, is_on: bool) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, int(is_on), 0, 0, 0) == 0)


def _has_children() -> bool:
    """Return whether we have a child or zombie; cheaper than a search through /proc."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _send(pid: int, number: signal.Signals) -> None:
    # The pid was not reused: only we reap our children, and for other descendants /proc was read
    # a moment ago.
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


# The environment of a nested agent program: an allow list.
#
# Never passed on: markers by which a program notices that it runs inside another agent
# (CLAUDECODE, COPILOT_CLI), since it would behave differently, and the variables of a git hook.

_ALLOWED = (
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM",
    "NO_COLOR", "TMPDIR", "TMP", "TEMP", "XDG_*", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
    "GIT_*", "UWF_*",
)  # fmt: skip

_NEVER = frozenset({
    "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_PLUGIN_ROOT", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "COPILOT_CLI", "COPILOT_RUN_APP",
    "COPILOT_AGENT_SESSION_ID", "GEMINI_CLI", "QWEN_CODE", "CURSOR_AGENT", "CURSOR_TRACE_ID",
    "OPENCODE", "OPENCODE_PID", "GOOSE_TERMINAL", "AGENT",
})  # fmt: skip

# Keys for our own model calls; the program has its own.
_OUR_SECRETS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


def allowed_environment(environ: Mapping[str, str], *, more: Sequence[str]) -> dict[str, str]:
    """Return the part of *environ* that a nested program may see.

    *more* adds names, or prefixes such as ``ANTHROPIC_*``. A full name overrides the exclusions.
    """
    patterns = (*_ALLOWED, *more)
    exact = {each for each in patterns if not each.endswith("*")}
    beginnings = tuple(each[:-1] for each in patterns if each.endswith("*"))
    return {
        name: value
        for name, value in environ.items()
        if name in exact
        or (
            name.startswith(beginnings)
            and name not in _NEVER | LOCAL_VARIABLES
            and not (name.startswith("UWF_") and name.endswith(_OUR_SECRETS))
        )
    }


# A watchdog shell in a program's process group that kills the program when we die.
#
# It reads from a pipe whose write end only we hold. When the pipe breaks, it kills every process
# that carries the program's mark in its environment, then the group. Shell messages about the
# program's end (`Terminated`) are discarded.

# $1 is the mark, which finds processes that left the group (Linux); it is exported after the
# watchdog was forked, so that the watchdog is killed last. 4 is the program's stderr. The trap
# keeps the shell alive on SIGTERM to the group, so that it returns the program's status; the last
# line keeps it from becoming the program by exec.
_WATCHDOG = """\
trap : TERM INT HUP
{ read -r line <&3 || {
    for round in 1 2 3; do
        for found in $(grep -ls "UWF_NESTED=$1" /proc/[0-9]*/environ); do
            found=${found#/proc/}; kill -s KILL "${found%/environ}"
        done
    done
    kill -s KILL 0
}; } >/dev/null 2>&1 4>&- &
export UWF_NESTED="$1"; shift
"""

_BY_STDIN = "exec 3<&0 </dev/null 4>&2 2>/dev/null\n"
_BY_NUMBER = 'exec 3<"/dev/fd/$0" 4>&2 2>/dev/null\n'

# $0 is the folder.
_WITH_FILES = """\
(exec 3<&- 4>&- <"$0/stdin" >>"$0/stdout" 2>>"$0/stderr"; exec "$@")
exit $?
"""
_WITH_STREAMS = """\
(exec 2>&4 3<&- 4>&-; exec "$@")
exit $?
"""


def watched_by_stdin(folder: str, argv: tuple[str, ...]) -> list[str]:
    """Return the argv of a shell that runs *argv*; the watchdog's pipe is the shell's stdin.

    The program's streams are the files stdin, stdout and stderr in *folder*.
    """
    return ["/bin/sh", "-c", _BY_STDIN + _WATCHDOG + _WITH_FILES, folder, _mark(), *argv]


def watched_by_descriptor(pipe: int, argv: tuple[str, ...]) -> list[str]:
    """Return the argv of a shell for *argv*; *pipe* is the watchdog's descriptor."""
    # Opened by name, since some shells duplicate one-digit descriptors only.
    return ["/bin/sh", "-c", _BY_NUMBER + _WATCHDOG + _WITH_STREAMS, str(pipe), _mark(), *argv]


def _mark() -> str:
    return os.urandom(16).hex()


STDIN, STDOUT, STDERR = "stdin", "stdout", "stderr"

DEFAULT_MAX_OUTPUT_BYTES = 64 * 1024 * 1024

# Less than an agent's grace, so that the program can end before its adapter is killed.
DEFAULT_GRACE_S = 2.0
_ORPHANS_GRACE_S = 1.0

_STDERR_TAIL_BYTES = 64 * 1024

# A full disk must not cost an answer that has been paid for.
_RESERVED_BYTES = 256 * 1024

# How long the watchdog shell gets to end by itself; it takes less than a millisecond.
_WATCHDOG_EXIT_S = 0.02
_WATCHDOG_TICK_S = 0.0005

# Chunks of output forwarded between two checks of the limits, since a reader may be slow.
_CHUNKS_A_TICK = 64

NestedOutcome = Literal["exited", "timed-out", "silent", "too-much-output", "interrupted"]


class NestedRequest(NamedTuple):
    argv: tuple[str, ...]
    """The program as an absolute path, then its arguments."""

    environment: Mapping[str, str]
    """The whole environment; see ``allowed_environment``."""

    workdir: str
    given: bytes

    folder: str
    """For the files stdin, stdout and stderr; nothing else should use it."""

    timeout_s: float | None = None
    silence_s: float | None = None
    """The longest time without output."""

    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """The limit for stdout, and for stderr."""

    grace_s: float = DEFAULT_GRACE_S

    linger_s: float = 0.0
    """How long what the program has started may run on when it has ended, by itself."""


class NestedRun(NamedTuple):
    outcome: NestedOutcome
    """``interrupted``: we received SIGTERM, SIGINT or SIGHUP."""

    exit_code: int
    """128 + n if signal n ended it; also there if we ended the program."""

    stdout: bytes
    """At most the limit; the file has the whole."""

    stderr: bytes

    duration_ms: int


def run_nested(
    request: NestedRequest,
    *,
    on_stdout: OnOutput = lambda _: None,
    on_stderr: OnOutput = lambda _: None,
) -> NestedRun:
    """Run a program to its end, passing output on as it comes.

    Pieces may end in the middle of a character. An exception of a callback ends the program. In
    the main thread, SIGTERM, SIGINT and SIGHUP are deferred and end the program first.
    """
    started = time.monotonic()
    received: list[int] = []
    with (
        closing(Orphans()) as orphans,
        closing(_open_outputs(request.folder, request.given)) as outputs,
        deferred_signals(received),
        watched(partial(_start_nested, request)) as (child, ended),
        cast("IO[bytes]", child.stdin),
    ):
        orphans.keep(child.pid)
        heard = ((outputs.stdout, on_stdout), (outputs.stderr, on_stderr))
        try:
            outcome = _follow(request, outputs, heard, ended, received)
            if outcome == "exited":
                _end_watchdog(child, within_s=max(_WATCHDOG_EXIT_S, request.linger_s))
        finally:
            # The watchdog shell ends with its group.
            stop_group(child, grace_s=request.grace_s)
            orphans.end(grace_s=min(request.grace_s, _ORPHANS_GRACE_S))
        forward(heard)
        status = child.wait()
        return NestedRun(
            outcome=outcome,
            exit_code=status if status >= 0 else 128 - status,
            stdout=outputs.stdout.read(0, request.max_output_bytes),
            stderr=outputs.stderr.read_tail(_STDERR_TAIL_BYTES),
            duration_ms=round((time.monotonic() - started) * 1000),
        )


def _follow(
    request: NestedRequest, outputs: Outputs, heard: Heard, ended: int, received: list[int]
) -> NestedOutcome:
    """Wait until the program ends, or must be ended."""

    def is_too_much() -> bool:
        return any(each.size() > request.max_output_bytes for each in outputs)

    poller = select.poll()
    poller.register(ended, 0)
    deadline = find_deadline(request.timeout_s)
    silent_from = find_deadline(request.silence_s)
    while not poller.poll(tick_ms(deadline, silent_from)):
        if forward(heard, at_most=_CHUNKS_A_TICK):
            silent_from = find_deadline(request.silence_s)
        now = time.monotonic()
        if received:
            return "interrupted"
        if is_too_much():
            return "too-much-output"
        if now >= deadline:
            return "timed-out"
        if now >= silent_from:
            return "silent"
    return "too-much-output" if is_too_much() else "exited"


def _end_watchdog(child: "subprocess.Popen[bytes]", *, within_s: float) -> None:
    """Let the watchdog shell end when the program has, and reap it and the rest of the group.

    As a zombie it would be a member of the group and our child, and ending such members means a
    search through /proc: some milliseconds at every turn.
    """
    # Unbuffered, since a buffered write that failed would be repeated by close.
    with suppress(BrokenPipeError):
        os.write(cast("IO[bytes]", child.stdin).fileno(), b"\n")
    child.wait()
    until = time.monotonic() + within_s
    # Without a subreaper the shell is not our child.
    with suppress(ChildProcessError):
        while time.monotonic() < until:
            if not os.waitpid(-child.pid, os.WNOHANG)[0]:
                time.sleep(_WATCHDOG_TICK_S)


def _open_outputs(folder: str, given: bytes) -> Outputs:
    os.makedirs(folder, exist_ok=True)
    stdin = create_output(os.path.join(folder, STDIN))
    with open(stdin.descriptor, "wb") as file:
        file.write(given)
    stdout = create_output(os.path.join(folder, STDOUT), reserved_bytes=_RESERVED_BYTES)
    try:
        return Outputs(stdout, create_output(os.path.join(folder, STDERR)))
    except OSError:
        stdout.close()
        raise


def _start_nested(request: NestedRequest, held: int) -> "subprocess.Popen[bytes]":
    # Absolute, since the program has another work directory.
    folder = os.path.abspath(request.folder)
    return subprocess.Popen(
        watched_by_stdin(folder, request.argv),
        stdin=subprocess.PIPE,
        stdout=held,
        stderr=subprocess.DEVNULL,
        cwd=request.workdir,
        env=dict(request.environment),
        start_new_session=True,
    )


# A program that we talk to line by line over its stdin and stdout.
#
# Threads read its output, so no pipe can fill and block both sides. After ``close`` nothing that
# the program started runs any more (nested.py).

_TICK_S = 0.05
_CHUNK_BYTES = 64 * 1024
_MOST_LINE_BYTES = 64 * 1024 * 1024
_MOST_OUTPUT_BYTES = 512 * 1024 * 1024
_TAIL_OF_COMPANION_BYTES = 16 * 1024

# A program that ends at end of input may still write files. All of these together are less than
# the grace that an engine gives us.
_EXIT_S = 0.5
_GRACE_S = 1.5


class StdioEnded(Exception):
    """The program ended or closed its stdout, and all its output was read, up to the limits."""

    def __init__(self, *, is_too_long: bool = False) -> None:
        super().__init__()
        self.is_too_long = is_too_long
        """A line, or the whole output, is longer than the limit."""


class StdioProcess:
    """A program that runs until it is closed."""

    def __init__(
        self,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        workdir: str,
        *,
        on_stderr: OnOutput = lambda _: None,
    ) -> None:
        """Start the program, an absolute path; its stderr goes to *on_stderr*, from a thread."""
        self._on_stderr = on_stderr
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.stderr_tail = b""
        self._is_too_long = False
        self._orphans = Orphans()
        read_end, self._watchdog_pipe = os.pipe()
        try:
            self._child = subprocess.Popen(
                watched_by_descriptor(read_end, argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=workdir,
                env=dict(environment),
                pass_fds=(read_end,),
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(self._watchdog_pipe)
            self._orphans.close()
            raise
        finally:
            os.close(read_end)
        self._orphans.keep(self._child.pid)
        self._stdin = cast("IO[bytes]", self._child.stdin)
        os.set_blocking(self._stdin.fileno(), False)
        reads = (self._read_stdout, self._read_stderr)
        self._readers = [threading.Thread(target=each, daemon=True) for each in reads]
        for reader in self._readers:
            reader.start()
        self._is_open = True

    @property
    def exit_code(self) -> int | None:
        """Its exit status, 128 + n if signal n ended it; None while it runs."""
        status = self._child.poll()
        return status if status is None or status >= 0 else 128 - status

    def send(self, line: bytes, *, wait: Callable[[], None]) -> None:
        """Write *line*; *wait* is called while the pipe is full, and may raise."""
        left = memoryview(line + b"\n")
        poller = select.poll()
        poller.register(self._stdin.fileno(), select.POLLOUT)
        while left:
            try:
                left = left[os.write(self._stdin.fileno(), left) :]
            except BlockingIOError:
                if self.exit_code is not None:
                    raise StdioEnded from None
                poller.poll(_TICK_S * 1000)
                wait()
            except BrokenPipeError:
                raise StdioEnded from None

    def receive(self) -> bytes | None:
        """Return its next line; None if there was none within a moment."""
        # A daemon that it left behind may keep its stdout open.
        has_ended = self.exit_code is not None
        try:
            line = self._lines.get(timeout=_TICK_S)
        except queue.Empty:
            if has_ended:
                raise StdioEnded from None
            return None
        if line is None:
            self._lines.put(None)
            raise StdioEnded(is_too_long=self._is_too_long)
        return line

    def wait(self, seconds: float) -> int | None:
        """Wait at most *seconds* for its end; return its exit status, None if it runs on."""
        until = time.monotonic() + seconds
        while self.exit_code is None and time.monotonic() < until:
            time.sleep(_TICK_S / 5)
        return self.exit_code

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._stdin.close()
            self.wait(_EXIT_S)
        finally:
            stop_group(self._child, grace_s=_GRACE_S)
            self._orphans.end(grace_s=_ORPHANS_GRACE_S)
            self._orphans.close()
            os.close(self._watchdog_pipe)
            for reader in self._readers:
                reader.join(timeout=_GRACE_S)

    def _read_stdout(self) -> None:
        total = 0
        begun = bytearray()
        with cast("IO[bytes]", self._child.stdout) as stdout:
            while chunk := os.read(stdout.fileno(), _CHUNK_BYTES):
                total += len(chunk)
                *ended, rest = chunk.split(b"\n")
                for line in ended:
                    self._lines.put(bytes(begun + line))
                    begun.clear()
                begun += rest
                if len(begun) > _MOST_LINE_BYTES or total > _MOST_OUTPUT_BYTES:
                    self._is_too_long = True
                    break
        if begun and not self._is_too_long:
            self._lines.put(bytes(begun))
        self._lines.put(None)

    def _read_stderr(self) -> None:
        with cast("IO[bytes]", self._child.stderr) as stderr:
            while chunk := os.read(stderr.fileno(), _CHUNK_BYTES):
                self.stderr_tail = (self.stderr_tail + chunk)[-_TAIL_OF_COMPANION_BYTES:]
                self._on_stderr(chunk)
