"""Limit how many agents of one user run at once on one machine: each holds a slot, a locked file.

The files in the folder of slots:

    queue   held by the process that looks for a free slot; the others poll for it
    0, 1 …  held by an agent, which inherits the open file, so it outlives its engine. The content
            says who took it; an empty one is free, even if a stray child still holds it
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.disk.held_file import HeldFile, read_content

_QUEUE = "queue"

# How often a waiting process looks for a free slot, and how often it calls *on_wait*.
_TICK_S = 0.02
_LOOK_S = 0.25


class SlotRequest(NamedTuple):
    """A request for a slot."""

    folder: str
    limit: int
    """How many slots may be held at once, this one included."""

    holder: Mapping[str, Any]
    """What the slot says of its holder; it must be JSON."""

    counts: Callable[[Mapping[str, Any]], bool]
    """Check from the content of a held slot whether its agent still counts."""

    on_wait: Callable[[int], None]
    """Called a few times a second while waiting, with how many slots are held; 0: not known, as
    another process looks. What it raises ends the wait."""

    waits: bool = True
    """Wait for a free slot; if False, return None at once."""


def slots_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of the slots of this user on this machine.

    Not $XDG_RUNTIME_DIR: cron jobs have none, and would be counted apart.

    Raises:
        Refused: the user has no home.
    """
    home = environ.get("HOME") or _find_home()
    if not home:
        raise Refused(
            "there is no $HOME to count running agents in, which uwf.maxRunning needs",
            code="no-place-for-slots",
            hint="set $HOME, or remove the limit: `uwf config set maxRunning 0`",
        )
    # Machines may share a home.
    return os.path.join(home, ".uwf", "slots", os.uname().nodename)


@contextmanager
def hold_slot(request: SlotRequest) -> Iterator[int | None]:
    """Hold a slot; yield its open file, which the agent inherits. None: no slot, and no waiting.

    Raises:
        LockingUnsupported, StoreFailed: the folder is not fit for locks.
        What *on_wait* raises.
    """
    with ExitStack() as stack:
        with _hold_queue(request) as is_first:
            descriptor = _find_slot(request, stack) if is_first else None
        try:
            yield descriptor
        finally:
            # A daemon that the agent left may keep the lock for days: an empty slot is free.
            if descriptor is not None:
                HeldFile(descriptor).clear()


@contextmanager
def _hold_queue(request: SlotRequest) -> Iterator[bool]:
    """Wait to be the one that looks for a slot; yield False if *request* does not wait.

    Polling leaves this thread awake for *on_wait*, which a blocking flock would not.
    """
    path = os.path.join(request.folder, _QUEUE)
    told_at = time.monotonic()
    while True:
        with hold_lock(path, wait=False) as descriptor:
            if descriptor is not None:
                yield True
                return
        if time.monotonic() - told_at >= _LOOK_S:
            if not request.waits:
                # A process that holds the queue this long waits for a slot, perhaps for that of
                # the agent that this process works for.
                yield False
                return
            request.on_wait(0)
            told_at = time.monotonic()
        time.sleep(_TICK_S)


def _find_slot(request: SlotRequest, stack: ExitStack) -> int | None:
    """Wait for a slot, and take it; the caller holds the queue."""
    looked_at = float("-inf")
    while True:
        free, running = _look(request)
        if running < request.limit:
            return _take(request, free, stack)
        if not request.waits:
            return None
        if time.monotonic() - looked_at >= _LOOK_S:
            request.on_wait(running)
            looked_at = time.monotonic()
        time.sleep(_TICK_S)


def _look(request: SlotRequest) -> tuple[str, int]:
    """Return the path of a free slot, and how many are held."""
    names = _list_slots(request.folder)
    free = None
    running = 0
    for name in names:
        path = os.path.join(request.folder, name)
        with hold_lock(path, wait=False) as descriptor:
            if descriptor is not None:
                free = free or path
            elif request.counts(read_content(path)):
                running += 1
    unused = next(str(number) for number in range(len(names) + 1) if str(number) not in names)
    return free or os.path.join(request.folder, unused), running


def _take(request: SlotRequest, path: str, stack: ExitStack) -> int | None:
    # It is still free: slots are taken only under the queue, which this process holds.
    descriptor = stack.enter_context(hold_lock(path, wait=True))
    if descriptor is not None:
        HeldFile(descriptor).write(request.holder)
    return descriptor


def _list_slots(folder: str) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if name.isascii() and name.isdecimal()}
    except FileNotFoundError:
        return set()


def _find_home() -> str:
    import pwd  # noqa: PLC0415 (Unix only, and only where there is no $HOME)

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
