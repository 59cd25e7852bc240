"""Slots: so many at once, and no more, on one machine for one user, whatever the store.

Owns: the lock files in a folder of slots, and the queue of those that wait for one.
Knows nothing of: agents, who decides how many there may be.
Always true: a slot is held by a living process that has its file open, so that a dead machine
never blocks; the first in the queue looks again and again, all others sleep in the kernel.

    queue   held by whoever looks for a free slot
    0, 1 …  each held by one that has found one; inherited, it outlives its engine. What is in it
            says who took it; an empty one is nobody's, even if a stray child still holds it
"""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.store.file_lock import hold_lock

_QUEUE = "queue"

# How soon a slot is seen that was let go, and how soon somebody who wants us to give up is heard.
_TICK_S = 0.02
_LOOK_S = 0.25

_LONGEST_TOLD = 10_000


class NoPlaceForSlots(Refused):
    """There is no home directory to keep the slots in."""

    code = "no-place-for-slots"

    def __init__(self) -> None:
        super().__init__(
            "there is no $HOME to count running agents in, which uwf.maxRunning needs",
            hint="set $HOME, or take the limit away: `uwf config set maxRunning 0`",
        )


class SlotRequest(NamedTuple):
    """Who asks for a slot, and how."""

    folder: str
    limit: int
    """How many may hold one at once, the one that asks included."""

    told: Mapping[str, Any]
    """What the slot is to say of its holder; it must be JSON."""

    counts: Callable[[Mapping[str, Any]], bool]
    """Tells of what a held slot says whether that is still true."""

    on_wait: Callable[[int], None]
    """Called a few times a second while waiting, with how many hold one; 0: nobody has looked.
    What it raises ends the waiting."""

    waits: bool = True
    """Whether to wait at all; who does not gets None if there is none."""


def slots_folder(environ: Mapping[str, str]) -> str:
    """Give the folder of the slots of this user on this machine.

    Not $XDG_RUNTIME_DIR, which a job of cron does not have: it would count for itself.

    Raises:
        NoPlaceForSlots: the user has no home.
    """
    home = environ.get("HOME") or _find_home()
    if not home:
        raise NoPlaceForSlots
    # A home may be shared by machines.
    return os.path.join(home, ".uwf", "slots", os.uname().nodename)


@contextmanager
def hold_slot(request: SlotRequest) -> Iterator[int | None]:
    """Hold a slot; give the open file, for the process to inherit that it is held for.

    Raises:
        LockingUnsupported, NoLockFile: the folder is not fit for locks.
        What *on_wait* raises.
    """
    with ExitStack() as stack:
        with _hold_queue(request) as is_first:
            descriptor = _find_slot(request, stack) if is_first else None
        try:
            yield descriptor
        finally:
            if descriptor is not None:
                # A daemon that was left behind may keep it open for days.
                os.ftruncate(descriptor, 0)


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
    """Give the file of a slot that nobody holds, and how many are held."""
    names = _list_slots(request.folder)
    free = None
    running = 0
    for name in names:
        path = os.path.join(request.folder, name)
        with hold_lock(path, wait=False) as descriptor:
            if descriptor is not None:
                free = free or path
            elif request.counts(read_slot(path)):
                running += 1
    unused = next(str(number) for number in range(len(names) + 1) if str(number) not in names)
    return free or os.path.join(request.folder, unused), running


def _take(request: SlotRequest, path: str, stack: ExitStack) -> int | None:
    # Nobody else can have taken it: the queue is ours.
    descriptor = stack.enter_context(hold_lock(path, wait=True))
    if descriptor is not None:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(dict(request.told)).encode(), 0)
    return descriptor


def read_slot(path: str) -> Mapping[str, Any]:
    """Read what a slot says of its holder; {} if it says nothing."""
    try:
        with open(path, "rb") as file:
            told = json.loads(file.read(_LONGEST_TOLD))
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _list_slots(folder: str) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if name.isascii() and name.isdecimal()}
    except FileNotFoundError:
        return set()


@contextmanager
def _hold_queue(request: SlotRequest) -> Iterator[bool]:
    """Be the first of those that wait, and until then look up now and then.

    False: somebody else is, and *request* does not wait.
    """
    path = os.path.join(request.folder, _QUEUE)
    patience_s = 0 if request.waits else _LOOK_S
    began = time.monotonic()
    while True:
        with hold_lock(path, wait=False) as descriptor:
            if descriptor is not None:
                yield True
                return
        if time.monotonic() - began >= patience_s:
            break
        time.sleep(_TICK_S)
    if not request.waits:
        # Who takes a slot is gone by now; whoever holds the queue so long waits for one, perhaps
        # for that of the agent that we work for.
        yield False
        return
    waiter = _Waiter(path)
    thread = threading.Thread(target=waiter.wait, daemon=True, name="uwf-queue")
    thread.start()
    try:
        while not waiter.is_first.wait(_LOOK_S):
            request.on_wait(0)
        if waiter.error is not None:
            raise waiter.error
        yield True
    finally:
        waiter.is_done.set()
        if waiter.is_first.is_set():
            thread.join()


class _Waiter:
    """Waits in the kernel on behalf of a thread that has to stay awake.

    A wait for a lock cannot be taken back: who gives up leaves it alone, and it lets go at once
    when its turn comes.
    """

    def __init__(self, path: str) -> None:
        self.is_first = threading.Event()
        self.is_done = threading.Event()
        self.error: BaseException | None = None
        self._path = path

    def wait(self) -> None:
        try:
            with hold_lock(self._path, wait=True):
                self.is_first.set()
                self.is_done.wait()
        except BaseException as error:  # noqa: BLE001 (raised again where somebody listens)
            self.error = error
            self.is_first.set()


def _find_home() -> str:
    import pwd  # noqa: PLC0415 (Unix only, and only where there is no $HOME)

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
