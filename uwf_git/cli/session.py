"""Settings: the flags and the environment of one run of a command.

The only reader of the environment, the clock, randomness and the working directory. A session never
changes; a flag makes a new one. It is a NamedTuple, since defining a frozen dataclass takes 2 ms.

UWF_REPO      the store, as `--repo`.
UWF_AGENT     the agent's command, where no flag names one.
UWF_FORMAT    the format of results, as `--format`.
UWF_TEST_NOW  for tests: the clock starts at this millisecond, and each reading adds 1000. New
              thread ids hold this millisecond and a count instead of randomness, so a process
              that is to make other ids needs another value.
"""

import io
import itertools
import os
import re
import select
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, NoReturn

from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.text import name_store, quote_path
from uwf_git.surroundings import Lazy, read_clock_ms

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from uwf_git.store.git import config as git_config
    from uwf_git.store.store import Store
else:
    git_config = Lazy("uwf_git.store.git.config")  # part of the store

# Whether a stream gets colours. Sources: https://no-color.org, https://force-color.org.


def wants_colour(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether a stream gets colours; NO_COLOR counts before FORCE_COLOR, as in Python."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return is_terminal and environ.get("TERM") != "dumb"


# The three standard streams: the only writes to standard output and error.
#
# No text fails to be written for its characters. After standard output is gone nothing is written
# to it, not even by the interpreter at its end.

STDOUT, STDERR = 1, 2


class ReaderGone(Exception):
    """The reader of our standard output has left (``uwf thread list | head -1``)."""


class OutputFailed(UwfError):
    """Standard output could not be written."""

    code = "output-failed"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"standard output: {reason}",
            hint="the command is done; print its result again",
        )


def hold_standard_streams() -> None:
    """Make sure that descriptors 0 to 2 are open, and that writing any text works.

    If one of them were closed, the next opened file, perhaps a ref, would get its number, and
    prints would land in that file. git does the same (``sanitize_stdfds``).
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # open() takes the lowest free number, which is this one: those below it are open.
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            if isinstance(stream.buffer, io.RawIOBase):
                # PYTHONUNBUFFERED: Python would drop what the system does not take at once.
                stream = open(stream.fileno(), "w", encoding=stream.encoding, closefd=False)  # noqa: SIM115 (to the end)
                setattr(sys, name, stream)
            if stream.errors != "backslashreplace":
                # Not twice: it flushes, and the terminal may be gone.
                stream.reconfigure(errors="backslashreplace")


def stdout_is_utf8() -> bool:
    """Return True if standard output is UTF-8."""
    return _is_utf8(sys.stdout)


def stderr_is_utf8() -> bool:
    """Return True if standard error is UTF-8."""
    return _is_utf8(sys.stderr)


def _is_utf8(stream: object) -> bool:
    encoding: str = getattr(stream, "encoding", None) or "utf-8"
    return encoding.lower().replace("-", "").replace("_", "") == "utf8"


def wants_stderr_colour(environ: Mapping[str, str]) -> bool:
    """Return True if what people read on standard error may be coloured."""
    return wants_colour(environ, is_terminal=_is_tty(sys.stderr))


def terminal_size(descriptor: int) -> os.terminal_size:
    """Return the size of a terminal; 80 columns and 24 lines where it does not say."""
    try:
        columns, lines = os.get_terminal_size(descriptor)
    except (OSError, ValueError):
        columns, lines = 0, 0
    # Some terminals report 0 if they do not know.
    return os.terminal_size((columns or 80, lines or 24))


def stderr_columns() -> int:
    """Return the width of the terminal that standard error is."""
    return terminal_size(STDERR).columns


def write_stdout(text: str) -> None:
    """Write *text* to standard output, and flush.

    Raises:
        ReaderGone: the reader has left.
        OutputFailed: the system refused, for example because the disk is full.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _abandon_stdout()
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from error
        raise OutputFailed(error.strerror or type(error).__name__) from error


def write_bytes(content: bytes) -> None:
    """Write *content* to standard output byte for byte, and flush; raise as ``write_stdout``."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Latin-1 has one character for each byte, so any bytes can be written like all other
        # output, with its handling of closed readers and full disks.
        sys.stdout.reconfigure(encoding="latin-1", newline="\n")
    write_stdout(content.decode("latin-1"))


def write_stderr(text: str) -> None:
    """Write *text* to standard error if it is open; a lost remark must not end a step."""
    if sys.stderr is None:
        return
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def wait_for_reader(seconds: float) -> None:
    """Wait, but notice that the reader of standard output leaves meanwhile."""
    poller = select.poll()
    try:
        poller.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError, AttributeError):
        # No file descriptor, as in a program that embeds this one.
        time.sleep(seconds)
        return
    if poller.poll(seconds * 1000):
        raise ReaderGone


def leave(status: int) -> NoReturn:
    """End the process, now.

    Finalizing the interpreter costs 15 ms, a tenth of a step, and the kernel frees all of it as
    well: everything durable is written already.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(status)


def _abandon_stdout() -> None:
    """Redirect the rest of the buffer to /dev/null, so that the final flush is silent.

    Source: "Note on SIGPIPE" in the documentation of Python's signal module.
    """
    with suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


Format = Literal["json", "yaml", "text"]
FORMATS: tuple[Format, ...] = ("json", "yaml", "text")

FORMAT_VARIABLE = "UWF_FORMAT"
FORMAT_SETTING = "uwf.format"

_ENTROPY_BYTES = 10


class Session(NamedTuple):
    """One run of a command: its flags, and the sources of its time and its ids."""

    cwd: str
    environ: Mapping[str, str]
    now_ms: Callable[[], int]
    new_thread_id: Callable[[], ThreadId]

    repo: str | None = None
    """The store that was named; None: discover it."""

    agent: str | None = None
    """The agent command of the environment, or None."""

    output_format: Format = "json"
    may_configure_format: bool = False
    """Nothing but the terminal has decided the format: ``uwf.format`` may choose another."""

    is_utc: bool = False
    """Show times in UTC at a terminal as well."""

    stdin_is_tty: bool = False
    stdout_is_tty: bool = False
    stderr_is_tty: bool = False

    opened: list["Store"] | None = None
    """The stores that were opened, for the work after it; None: neither note them nor warn."""

    held: ExitStack | None = None
    """What is released when the command has ended and its failure, if any, was reported."""

    def open_store(self, *, create: bool = False) -> "Store":
        """Open the store of this session; *create* makes the default store if it is missing.

        Raises:
            NotAStore: there is none where it should be.
        """
        from uwf_git.store.store import (  # noqa: PLC0415 (costs 60 ms)
            find_bare_around,
            find_store,
            list_changed_settings,
        )

        store = None
        try:
            store = find_store(self.repo, self.cwd, self.environ, create=create)
        finally:
            if not self.repo and self.opened == []:
                _warn_of_bare(find_bare_around(self.cwd), used=store)
        if self.opened is not None:
            if not self.opened:
                _warn_of_changes(list_changed_settings(store))
            self.opened.append(store)
        if self.held is not None:
            # The lock or folder of one user would keep all others out of a shared store.
            self.held.enter_context(
                git_config.shared_umask(store.config, own_file=store.trust_file)
            )
        return store

    @property
    def is_screen(self) -> bool:
        """Whether a person reads text at a terminal: lines must fit, ids may be short."""
        return self.output_format == "text" and self.stdout_is_tty

    @property
    def can_ask(self) -> bool:
        """Whether a person is at a terminal, to be asked and to answer."""
        return self.stdin_is_tty and self.stderr_is_tty

    def with_configured_format(self) -> "Session":
        """Return the session with the format that ``uwf.format`` has, if nothing else decided."""
        if not self.may_configure_format:
            return self
        store = text = None
        # The verb reports what is wrong with the store, if it needs one.
        with suppress(UwfError, OSError):
            store = self._replace(opened=None, held=None).open_store()
        with suppress(UwfError, OSError):
            config = store.config if store else git_config.read_user_config(self.environ)
            text = config.get(FORMAT_SETTING)
        chosen = "text" if text is None else _parse_format(FORMAT_SETTING, text)
        return self._replace(output_format=chosen, may_configure_format=False)

    def text_width(self) -> int | None:
        """Return the width of the terminal that text is written to; None if it is no terminal."""
        if not self.stdout_is_tty:
            return None
        typed = _natural(self.environ.get("COLUMNS", "")) or terminal_size(STDOUT).columns
        return min(typed, 10_000)


_TYPED_STORE = ContextVar("_TYPED_STORE", default="")


def note_typed_store(path: str) -> None:
    """Note that --repo names the store, or, with an empty text, that nothing was typed."""
    _TYPED_STORE.set(path)


def with_typed_store(text: str) -> str:
    """Return *text*, in which the commands that it advises name the store that --repo named."""
    return name_store(text, _TYPED_STORE.get()) if _TYPED_STORE.get() else text


def read_session(environ: Mapping[str, str]) -> Session:
    """Read the settings that every command shares; an empty variable counts as unset."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise Refused(
            "the current directory is gone", code="directory-gone", hint="`cd` to one that exists"
        ) from None
    pinned = environ.get("UWF_TEST_NOW")
    now_ms, new_thread_id = _pinned_sources(pinned) if pinned else (read_clock_ms, _new_thread_id)
    stdout_is_tty = _is_tty(sys.stdout)
    named = environ.get(FORMAT_VARIABLE)
    # Agents have terminals as well, and parse what they get.
    is_for_people = stdout_is_tty and not environ.get("UWF_THREAD_ID")
    return Session(
        cwd=cwd,
        environ=environ,
        now_ms=now_ms,
        new_thread_id=new_thread_id,
        repo=environ.get("UWF_REPO") or None,
        agent=environ.get("UWF_AGENT") or None,
        output_format=_parse_format(FORMAT_VARIABLE, named)
        if named
        else ("text" if is_for_people else "json"),
        may_configure_format=is_for_people and not named,
        stdin_is_tty=_is_tty(sys.stdin),
        stdout_is_tty=stdout_is_tty,
        stderr_is_tty=_is_tty(sys.stderr),
    )


def _parse_format(where: str, text: str) -> Format:
    """Return the format that a variable or a setting names; raise `BadUsage`."""
    for known in FORMATS:
        if text.lower() == known:
            return known
    raise BadUsage(
        f"{where} is {text[:40]!r}, not a format",
        code="bad-format",
        hint=f"the formats are {', '.join(FORMATS)}",
    )


def _warn_of_bare(bare: str | None, *, used: "Store | None") -> None:
    if bare is not None and (used is None or not os.path.samefile(bare, used.path)):
        shown = quote_path(bare)
        write_stderr(
            f"warning: this directory is in the bare repository {shown}, which is not used unless "
            f"it is named: `uwf --repo {shown} …`\n"
        )


def _warn_of_changes(changed: Sequence[str]) -> None:
    if changed:
        shown = ascii(", ".join(changed))[1:-1]
        write_stderr(
            "warning: this store's config was changed since an agent was started, not by your "
            f"uwf: {shown:.500}; read it; `uwf verify` takes it as known\n"
        )


def _is_tty(stream: IO[str] | None) -> bool:
    # Python sets it to None if the stream was closed at start.
    with suppress(ValueError):
        return stream is not None and stream.isatty()
    return False


def _natural(text: str) -> int | None:
    # Python refuses to read numbers of thousands of digits; 19 are enough for any time.
    return int(text) if re.fullmatch("[0-9]{1,19}", text) else None


def _new_thread_id() -> ThreadId:
    return thread_id_at(read_clock_ms(), os.urandom(_ENTROPY_BYTES))


def thread_id_at(time_ms: int, entropy: bytes) -> ThreadId:
    """Return the id of a thread created at *time_ms*, made unique by *entropy*.

    Source: https://github.com/ulid/spec: 48 bits of milliseconds since 1970, 80 of randomness.

    Raises:
        OverflowError: *time_ms* does not fit 48 bits.
    """
    from ulid import ULID  # noqa: PLC0415 (50 ms)

    return ThreadId(str(ULID.from_bytes(time_ms.to_bytes(6, "big") + entropy)))


def _pinned_sources(text: str) -> tuple[Callable[[], int], Callable[[], ThreadId]]:
    start_ms = _natural(text)
    if start_ms is None or start_ms >= 2**48:
        raise BadUsage(
            f"UWF_TEST_NOW is {text[:40]!r}, not milliseconds since 1970",
            code="bad-test-clock",
            hint="unset it: only tests need it",
        )
    counted = itertools.count(1)

    def new_thread_id() -> ThreadId:
        return thread_id_at(start_ms, next(counted).to_bytes(_ENTROPY_BYTES, "big"))

    return itertools.count(start_ms, 1000).__next__, new_thread_id


def find_installed(name: str) -> "Distribution | None":
    """Return the package *name* as it is installed; None in a source tree that is not."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 (30 ms)

    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def installed_version(name: str = "uwf") -> str:
    """Return the version of the package *name*, or "unknown"."""
    found = find_installed(name)
    return "unknown" if found is None else found.version
