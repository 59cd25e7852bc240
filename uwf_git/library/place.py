"""The place of a runtime: its store, caller and players.

Each call opens the store anew: Python threads share files only, which locks and refs guard between
processes as well. A thread keeps what it has read of a store's objects for its next call; what an
object's name stands for never changes.
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
from uwf_git.library.players import PlayerFunction, StepMemory
from uwf_git.store.disk.file_memory import read_stamp
from uwf_git.store.objects.objects import DurableObjects, ObjectStore
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
    memory: StepMemory
    """What the players have read."""

    @property
    def caller(self) -> Caller:
        """The caller of the commands."""
        return Caller(self.now_ms, self.environ, self.cwd)

    def open(self) -> Store:
        """Open the store."""
        store = open_store(self.path, environ=self.environ)
        return store._replace(objects=_keep_objects(store.objects, self.path))

    def open_to_look(self) -> Store:
        """Return a store for reading threads; its settings stay as they were at its first use."""
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


class _Kept(threading.local):
    """The objects of the store that a Python thread used last."""

    key: tuple[object, ...] = ()
    objects: ObjectStore | None = None


_KEPT = _Kept()


def _keep_objects(opened: ObjectStore, git_dir: str) -> ObjectStore:
    """Return the objects that this Python thread has open at *git_dir*, else *opened*."""
    folder = os.path.join(git_dir, "objects")
    stamp = read_stamp(folder)
    # Another store may have been made in its place, and alternates are read once. A forked child
    # shares the place of reading in open packs with its parent.
    place = None if stamp is None else (stamp.device, stamp.inode)
    key = (git_dir, os.getpid(), place, read_stamp(os.path.join(folder, "info", "alternates")))
    kept = _KEPT.objects
    if not isinstance(kept, DurableObjects) or _KEPT.key != key:
        _KEPT.key, _KEPT.objects = key, opened
        return opened
    if isinstance(opened, DurableObjects):
        kept.durable = opened.durable
    return kept


def read_environ() -> dict[str, str]:
    """Return the environment of this process."""
    return dict(os.environ)


def to_path(given: str | os.PathLike[str] | None) -> str | None:
    """Return the text of a path; None if there is none."""
    return None if given is None else os.fspath(given)


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
