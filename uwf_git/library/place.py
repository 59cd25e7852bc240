"""The place of a runtime: its store, caller and players.

Each call opens the store anew, but for quick looks at a thread, for which each Python thread keeps
one: Python threads share files only, which locks and refs guard between processes as well.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from uwf_git.commands.after import follow_up
from uwf_git.commands.caller import Caller
from uwf_git.debug_log import debug
from uwf_git.library.arguments import WrongArgument
from uwf_git.library.players import PlayerFunction
from uwf_git.store.store import Store, open_store

_NS_PER_MS = 1_000_000

# The first that a ULID cannot hold.
_LAST_MS = 2**48


class KeptStore(threading.local):
    """The store that a Python thread keeps for reading."""

    opened: Store | None = None
    pid = 0
    """The process that opened it: a forked child must not share its files."""


class Place(NamedTuple):
    """The store of a runtime, and the caller of its commands."""

    path: str
    """The git directory."""

    cwd: str
    environ: Mapping[str, str]
    now_ms: Callable[[], int]
    agent: str | None
    """The agent of roles without one; None: the one in git config."""

    players: Mapping[str, PlayerFunction]
    kept: KeptStore

    @property
    def caller(self) -> Caller:
        """The caller of the commands."""
        return Caller(self.now_ms, self.environ, self.cwd)

    def open(self) -> Store:
        """Open the store."""
        return open_store(self.path, environ=self.environ)

    def open_to_look(self) -> Store:
        """Return a store for reading threads; its settings are those of its first use."""
        kept = self.kept
        if kept.opened is None or kept.pid != os.getpid():
            kept.opened, kept.pid = self.open(), os.getpid()
        return kept.opened

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """Open the store for a command that writes, and follow up, also if the command fails."""
        store = self.open()
        try:
            yield store
        finally:
            self.follow_up(store)

    def follow_up(self, store: Store) -> None:
        """Announce what was recorded to `uwf.onEvent`, and pack the store if that is due."""
        problem = follow_up(store, self.environ)
        if problem is not None:
            # The call is done, and a library prints nothing.
            debug("0NP9XCKZ", "a listener failed", problem=problem)


def read_environ() -> dict[str, str]:
    """Return the environment of this process."""
    return dict(os.environ)


def read_system_clock_ms() -> int:
    """Return the time in milliseconds since 1970; 0 if the clock is before."""
    return max(0, time.time_ns() // _NS_PER_MS)


def checked_clock(now_ms: Callable[[], int]) -> Callable[[], int]:
    """Return *now_ms*, which then raises ``WrongArgument`` if it returns no time."""

    def read() -> int:
        now: object = now_ms()
        if not isinstance(now, int) or isinstance(now, bool) or not 0 <= now < _LAST_MS:
            raise WrongArgument("now_ms()", "it returns milliseconds since 1970, a whole number")
        return now

    return read
