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

import itertools
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING, Literal, NamedTuple

from uwf_git.cli.session.streams import write_stderr
from uwf_git.errors import BadUsage, Refused, UwfError
from uwf_git.model.names import ThreadId

if TYPE_CHECKING:
    # The store imports dulwich (60 ms), which `--help` and usage errors do not need.
    from uwf_git.store.store import Store

Format = Literal["json", "yaml", "text"]
FORMATS: tuple[Format, ...] = ("json", "yaml", "text")

FORMAT_VARIABLE = "UWF_FORMAT"
FORMAT_SETTING = "uwf.format"

_LARGEST_ULID_MS = 2**48 - 1
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
    """The stores that were opened, for the work after the command; None: do not note them."""

    held: ExitStack | None = None
    """What is released when the command has ended and its failure, if any, was reported."""

    def open_store(self, *, create: bool = False) -> "Store":
        """Open the store of this session; *create* makes the default store if it is missing.

        Raises:
            NotAStore: there is none where it should be.
        """
        from uwf_git.store.discover import find_store  # noqa: PLC0415 (costs 60 ms, see above)

        store = None
        try:
            store = find_store(self.repo, self.cwd, self.environ, create=create)
        finally:
            if not self.repo and not self.opened and not self.environ.get("_UWF_COMPLETE"):
                _warn_of_bare(self.cwd, used=store)
        if self.opened is not None:
            if not self.opened:
                _warn_of_changes(store)
            self.opened.append(store)
        if self.held is not None:
            from uwf_git.store.git.shared_mode import shared_umask  # noqa: PLC0415 (the same)

            # The lock or folder of one user would keep all others out of a shared store.
            self.held.enter_context(shared_umask(store.config))
        return store

    @property
    def is_screen(self) -> bool:
        """Whether a person reads text at a terminal: lines must fit, ids may be short."""
        return self.output_format == "text" and self.stdout_is_tty

    def with_configured_format(self) -> "Session":
        """Return the session with the format that ``uwf.format`` has, if nothing else decided."""
        if not self.may_configure_format:
            return self
        from uwf_git.store.discover import find_store  # noqa: PLC0415 (costs 60 ms, see above)
        from uwf_git.store.git.scopes import read_user_config  # noqa: PLC0415 (the same)
        from uwf_git.store.store import NotAStore  # noqa: PLC0415 (the same)

        text = None
        # The verb reports what is wrong with the store, if it needs one.
        with suppress(UwfError, OSError):
            try:
                store = find_store(self.repo, self.cwd, self.environ, create=False)
                text = store.config.get(FORMAT_SETTING)
            except NotAStore:
                text = read_user_config(self.environ).get(FORMAT_SETTING)
        chosen = "text" if text is None else _parse_format(FORMAT_SETTING, text)
        return self._replace(output_format=chosen, may_configure_format=False)

    def text_width(self) -> int | None:
        """Return the width of the terminal that text is written to; None if it is no terminal."""
        if not self.stdout_is_tty:
            return None
        asked = _natural(self.environ.get("COLUMNS", ""))
        if asked:
            return asked
        try:
            # Some terminals report 0 columns if they do not know.
            return os.get_terminal_size(sys.stdout.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


def read_session(environ: Mapping[str, str]) -> Session:
    """Read the settings that every command shares; an empty variable counts as unset."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise Refused(
            "the current directory is gone", code="directory-gone", hint="`cd` to one that exists"
        ) from None
    pinned = environ.get("UWF_TEST_NOW")
    now_ms, new_thread_id = _pinned_sources(pinned) if pinned else (_now_ms, _new_thread_id)
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


def _warn_of_bare(cwd: str, *, used: "Store | None") -> None:
    from uwf_git.store.discover import find_bare_around  # noqa: PLC0415 (as above)

    bare = find_bare_around(cwd)
    if bare is not None and (used is None or not os.path.samefile(bare, used.path)):
        shown = shlex.quote(bare) if bare.isprintable() else ascii(bare)
        write_stderr(
            f"warning: this directory is in the bare repository {shown}, which is not used unless "
            f"it is named: `uwf --repo {shown} …`\n"
        )


def _warn_of_changes(store: "Store") -> None:
    from uwf_git.store.config_watch import list_changed_settings  # noqa: PLC0415 (as above)

    changed = list_changed_settings(store)
    if changed:
        shown = ascii(", ".join(changed))[1:-1]
        write_stderr(
            f"warning: this store's config was changed since an agent was started, not by uwf: "
            f"{shown:.500}; read it; `uwf verify` takes it as known\n"
        )


def _is_tty(stream: IO[str] | None) -> bool:
    # Python sets it to None if the stream was closed at start.
    return stream is not None and stream.isatty()


def _natural(text: str) -> int | None:
    # Python refuses to read numbers of thousands of digits; 19 are enough for any time.
    return int(text) if re.fullmatch("[0-9]{1,19}", text) else None


def _now_ms() -> int:
    # A clock before 1970 counts as 1970: no node and no commit can have an earlier time.
    return max(0, time.time_ns() // 1_000_000)


def _new_thread_id() -> ThreadId:
    return _thread_id_at(_now_ms(), os.urandom(_ENTROPY_BYTES))


def _thread_id_at(time_ms: int, entropy: bytes) -> ThreadId:
    from uwf_git.cli.session.new_thread_id import thread_id_at  # noqa: PLC0415 (python-ulid: 50 ms)

    return thread_id_at(time_ms, entropy)


def _pinned_sources(text: str) -> tuple[Callable[[], int], Callable[[], ThreadId]]:
    start_ms = _natural(text)
    if start_ms is None or start_ms > _LARGEST_ULID_MS:
        raise BadUsage(
            f"UWF_TEST_NOW is {text[:40]!r}, not milliseconds since 1970",
            code="bad-test-clock",
            hint="unset it: only tests need it",
        )
    counted = itertools.count(1)

    def new_thread_id() -> ThreadId:
        return _thread_id_at(start_ms, next(counted).to_bytes(_ENTROPY_BYTES, "big"))

    return itertools.count(start_ms, 1000).__next__, new_thread_id
