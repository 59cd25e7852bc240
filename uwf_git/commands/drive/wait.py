"""Wait: for threads until nobody is at work on them, and while one stays in a status."""

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from uwf_git.commands.agent_run.running import is_any_at_work, refuse_inside
from uwf_git.commands.inspect.list import count_branches
from uwf_git.commands.split.family import Family
from uwf_git.errors import Conflict
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.thread import Status, Waiting
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, find_head, get_head, resolve_thread
from uwf_git.store.threads.snapshot import read_snapshot

# Sleep while a thread stays in a status: its ref is polled, so a pause or an end takes effect.

_TICK_S = 0.2
_LONGEST_TICK_S = 1.0

# In a wait longer than a retry's, the ref is polled less often.
_LONG_S = 60.0
_MS = 1000


def wait_in_status(
    store: Store,
    waiting: tuple[ThreadId, Status],
    seconds: float,
    *,
    until: tuple[Callable[[], int], int],
    sleep: Callable[[float], None],
) -> None:
    """Sleep *seconds* and until a time, but only while the thread is in the status of *waiting*.

    *until* is a clock, and a time in its milliseconds. A pause before the first look is noticed.
    """
    (thread, status), (now_ms, until_ms) = waiting, until
    seen: Head | None = None
    slept_s = 0.0
    while True:
        left_s = max(seconds - slept_s, (until_ms - now_ms()) / _MS)
        head = find_head(store, thread)
        if left_s <= 0 or head is None or head.archived:
            return
        if head != seen and read_snapshot(store, head.commit).record.status != status:
            return
        seen = head
        tick_s = min(left_s, _LONGEST_TICK_S if left_s > _LONG_S else _TICK_S)
        sleep(tick_s)
        slept_s += tick_s


# `uwf thread wait`: return when no process is at work on a thread any more.
#
# A look takes no lock, creates no file, and reads no object unless the thread is at rest, or
# another one is at work that may be a branch of it.

_NOTHING: Mapping[str, int] = MappingProxyType({})
_FIRST_TICK_S = 0.05
_LONGEST_PAUSE_S = 0.5
_GROWTH = 1.5


class StillAtWork(Conflict):
    """The timeout of `uwf thread wait` is over."""

    code = "still-at-work"

    def __init__(self, threads: Sequence[ThreadId], timeout_s: float) -> None:
        is_one = len(threads) == 1
        who = f"thread {threads[0]} is" if is_one else f"{len(threads)} threads are"
        super().__init__(
            f"{who} still at work after {timeout_s:g} s",
            hint=f"see what runs with `uwf ps`, and its output with `uwf thread logs {threads[0]}`",
            threads=list(threads),
        )


class AtRest(NamedTuple):
    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    waiting: Waiting | None
    branches: Mapping[str, int] = _NOTHING
    """How many branches have which status, of a thread that has split."""


class WaitRequest(NamedTuple):
    threads: Sequence[str]

    timeout_s: float | None = None
    """None: no limit."""

    environ: Mapping[str, str] = {}
    """Who waits: an agent's environment names its thread."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic


def wait_for_threads(
    store: Store,
    request: WaitRequest,
    *,
    on_rest: Callable[[AtRest], None],
) -> None:
    """Wait until no process is at work on any of the threads; pass each to *on_rest* as it rests.

    A driver is at work also while it sleeps until a limit ends, a paused thread while its last
    step runs, and a thread whose engine was killed while its agent runs. A process at work on a
    branch is at work on the threads around it.
    """
    threads = list(dict.fromkeys(resolve_thread(store, text) for text in request.threads))
    for thread in threads:
        refuse_inside(store, thread, request.environ)
    begun_s = request.monotonic()
    tick_s = _FIRST_TICK_S
    while True:
        threads = [thread for thread in threads if not _tell_rest(store, thread, on_rest)]
        if not threads:
            return
        left_s = _LONGEST_PAUSE_S
        if request.timeout_s is not None:
            left_s = request.timeout_s - (request.monotonic() - begun_s)
            if left_s <= 0:
                raise StillAtWork(threads, request.timeout_s)
        request.sleep(min(tick_s, left_s))
        tick_s = min(_LONGEST_PAUSE_S, tick_s * _GROWTH)


def _tell_rest(store: Store, thread: ThreadId, on_rest: Callable[[AtRest], None]) -> bool:
    # The locks first: once they are free, the record read below is final.
    is_busy = is_any_at_work(store, Family(store, thread))
    head = get_head(store, thread)
    if is_busy and not head.archived:
        return False
    snapshot = read_snapshot(store, head.commit)
    record = snapshot.record
    waiting = snapshot.get_present().waiting if record.status == "waiting" else None
    branches = count_branches(store, snapshot) if record.status == "split" else _NOTHING
    on_rest(AtRest(record.workflow, thread, record.node, record.status, waiting, branches))
    return True
