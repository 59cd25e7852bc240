"""Settings: what this run of a command was given by its flags and its environment.

Owns: the only reading of the environment, the clock, randomness and the working directory.
Knows nothing of: any command. Settings in git config are the store's to read.
Always true: a session never changes; a flag nearer to the command makes a new one. (It is a
NamedTuple, as all values on the way to `--help` are: a frozen dataclass takes 2 ms to define.)

UWF_REPO      the store, as `--repo`.
UWF_AGENT     the agent's command, where no flag names one.
UWF_TEST_NOW  for tests: the clock starts at this millisecond, and each look at it adds 1000. New
              thread ids hold this millisecond and a count instead of randomness, so a process
              that is to make other ids needs another one.
"""

import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from uwf_git.errors import BadUsage, Refused
from uwf_git.model.thread_id import ThreadId

if TYPE_CHECKING:
    # The store costs dulwich, 60 ms, which `--help` and usage errors must not pay.
    from uwf_git.store.store import Store

Format = Literal["json", "yaml", "text"]
FORMATS: tuple[Format, ...] = ("json", "yaml", "text")

_LARGEST_ULID_MS = 2**48 - 1
_ENTROPY_BYTES = 10


class DirectoryGone(Refused):
    """The directory that the command was called in does not exist any more."""

    code = "directory-gone"

    def __init__(self) -> None:
        super().__init__("the current directory is gone", hint="`cd` to one that exists")


class BadTestClock(BadUsage):
    """`UWF_TEST_NOW` is not a time."""

    code = "bad-test-clock"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"UWF_TEST_NOW is {text[:40]!r}, not milliseconds since 1970",
            hint="unset it: only tests need it",
        )


class Session(NamedTuple):
    """One run of a command: what it was given, and where its time and its ids come from."""

    cwd: str
    environ: Mapping[str, str]
    now_ms: Callable[[], int]
    new_thread_id: Callable[[], ThreadId]

    repo: str | None = None
    """The store that was named; None leaves it to discovery."""

    agent: str | None = None
    """The agent command of the environment; None if there is none."""

    output_format: Format = "json"
    stdin_is_tty: bool = False
    stdout_is_tty: bool = False
    stderr_is_tty: bool = False

    opened: list["Store"] | None = None
    """Where the stores go that were opened, for what is done when the command is; None: nowhere."""

    def open_store(self, *, create: bool = False) -> "Store":
        """Open the store of this session; *create* makes the default one if there is none.

        Raises:
            NotAStore: there is none where it should be.
            UnsupportedRepository: it is of a kind that we cannot read.
        """
        from uwf_git.store.discover import find_store  # noqa: PLC0415 (costs 60 ms, see above)

        store = find_store(self.repo, self.cwd, self.environ, create=create)
        if self.opened is not None:
            self.opened.append(store)
        return store

    def text_width(self) -> int | None:
        """Give the columns of the terminal that text goes to; None if it goes anywhere else."""
        if not self.stdout_is_tty:
            return None
        asked = _natural(self.environ.get("COLUMNS", ""))
        if asked:
            return asked
        try:
            # Some terminals say 0, meaning that they do not know.
            return os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


def read_session(environ: Mapping[str, str]) -> Session:
    """Read what is the same for every command; an empty variable counts as unset.

    Raises:
        DirectoryGone: there is no current directory.
        BadTestClock: `UWF_TEST_NOW` is no time.
    """
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise DirectoryGone from None
    pinned = environ.get("UWF_TEST_NOW")
    now_ms, new_thread_id = _pinned_sources(pinned) if pinned else (_now_ms, _new_thread_id)
    return Session(
        cwd=cwd,
        environ=environ,
        now_ms=now_ms,
        new_thread_id=new_thread_id,
        repo=environ.get("UWF_REPO") or None,
        agent=environ.get("UWF_AGENT") or None,
        stdin_is_tty=_is_tty(sys.stdin),
        stdout_is_tty=_is_tty(sys.stdout),
        stderr_is_tty=_is_tty(sys.stderr),
    )


def _is_tty(stream: IO[str] | None) -> bool:
    # Python gives None for a stream that was closed when it started.
    return stream is not None and stream.isatty()


def _natural(text: str) -> int | None:
    # Python refuses to read numbers of thousands of digits; nobody means one of twenty.
    return int(text) if re.fullmatch("[0-9]{1,19}", text) else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_thread_id() -> ThreadId:
    return _thread_id_at(_now_ms(), os.urandom(_ENTROPY_BYTES))


def _thread_id_at(time_ms: int, entropy: bytes) -> ThreadId:
    from uwf_git.cli.new_thread_id import thread_id_at  # noqa: PLC0415 (python-ulid: 50 ms)

    return thread_id_at(time_ms, entropy)


def _pinned_sources(text: str) -> tuple[Callable[[], int], Callable[[], ThreadId]]:
    start_ms = _natural(text)
    if start_ms is None or start_ms > _LARGEST_ULID_MS:
        raise BadTestClock(text)
    counted = itertools.count(1)

    def new_thread_id() -> ThreadId:
        return _thread_id_at(start_ms, next(counted).to_bytes(_ENTROPY_BYTES, "big"))

    return itertools.count(start_ms, 1000).__next__, new_thread_id
