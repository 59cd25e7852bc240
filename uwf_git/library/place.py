"""The place of a runtime: which store, and who calls.

Owns: what every call needs, and what is done after one that wrote.
Knows nothing of: what is called.
Always true: each call opens the store anew, so that calls of several Python threads share nothing
but the files, which the locks and the refs guard between processes as well.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from uwf_git.commands.announce_events import announce_events
from uwf_git.commands.caller import Caller
from uwf_git.debug_log import debug
from uwf_git.library.players import PlayerFunction
from uwf_git.store.packing_policy import find_due
from uwf_git.store.store import Store, open_store

_NS_PER_MS = 1_000_000


class Place(NamedTuple):
    """Where a runtime works, and as whom."""

    path: str
    """The git directory."""

    cwd: str
    environ: Mapping[str, str]
    now_ms: Callable[[], int]
    agent: str | None
    """Who plays a role for which nobody is named; None: git config says."""

    players: Mapping[str, PlayerFunction]

    @property
    def caller(self) -> Caller:
        """Give who calls, as commands want it."""
        return Caller(self.now_ms, self.environ, self.cwd)

    def open(self) -> Store:
        """Open the store, to read.

        Raises:
            NotAStore, UnsupportedRepository: it is not there any more, or of another kind.
        """
        return open_store(self.path, environ=self.environ)

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """Open the store to write; whoever listens is told of what was done, also if it fails."""
        store = self.open()
        try:
            yield store
        finally:
            self.follow_up(store)

    def follow_up(self, store: Store) -> None:
        """Do what comes after a command: tell `uwf.onEvent` of it, and pack what is due."""
        problem = announce_events(store, self.environ)
        if problem is not None:
            # The call is done; there is nobody to tell.
            debug("0NP9XCKZ", "a listener failed", problem=problem)
        with suppress(OSError):
            if find_due(store):
                from uwf_git.commands.gc_store import (  # noqa: PLC0415 (once in some hundred steps)
                    is_gc_due,
                    start_gc,
                )

                if is_gc_due(store):
                    start_gc(store, self.caller)


def read_environ() -> dict[str, str]:
    """Give the environment as it is now."""
    return dict(os.environ)


def read_clock_ms() -> int:
    """Give the time in milliseconds since 1970."""
    return time.time_ns() // _NS_PER_MS
