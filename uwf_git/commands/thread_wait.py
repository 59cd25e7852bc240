"""`uwf thread wait`: return when nobody is at work on a thread any more.

Owns: when a thread is at work, and how often that is looked at.
Knows nothing of: who drives. Always true: a look takes no lock and makes no file, and costs no
object unless the thread is at rest.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from uwf_git.commands.running import is_at_work
from uwf_git.errors import Conflict
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Status, Waiting
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import get_head, resolve_thread
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store

_FIRST_TICK_S = 0.05
_LONGEST_TICK_S = 0.5
_GROWTH = 1.5


class StillAtWork(Conflict):
    """The time to wait is over, and the thread is not at rest."""

    code = "still-at-work"

    def __init__(self, threads: Sequence[ThreadId], timeout_s: float) -> None:
        is_one = len(threads) == 1
        who = f"thread {threads[0]} is" if is_one else f"{len(threads)} threads are"
        super().__init__(
            f"{who} still at work after {timeout_s:g} s",
            hint=f"see what runs with `uwf ps`, what it says with `uwf thread logs {threads[0]}`",
            threads=list(threads),
        )


class AtRest(NamedTuple):
    """A thread on which nobody is at work."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    waiting: Waiting | None


class WaitRequest(NamedTuple):
    """What is waited for."""

    threads: Sequence[str]
    """Ids, or beginnings that no other threads have."""

    timeout_s: float | None = None
    """None: as long as it takes."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic


def wait_for_threads(
    store: Store,
    request: WaitRequest,
    *,
    on_rest: Callable[[AtRest], None],
) -> None:
    """Wait until nobody is at work on any of the threads, and tell *on_rest* of each as it rests.

    A thread rests that has ended, that waits for somebody, is paused or has failed, and one that
    is ready while nobody drives or steps it. One that is driven is at work also when it sleeps
    until the end of a limit; one that is paused, as long as the step goes on that was under way;
    and one whose engine was killed, as long as its agent works on.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: there is none to wait for.
        StillAtWork: the time is over.
    """
    threads = list(dict.fromkeys(resolve_thread(store, text) for text in request.threads))
    begun_s = request.monotonic()
    tick_s = _FIRST_TICK_S
    while True:
        threads = [thread for thread in threads if not _tell_rest(store, thread, on_rest)]
        if not threads:
            return
        left_s = _LONGEST_TICK_S
        if request.timeout_s is not None:
            left_s = request.timeout_s - (request.monotonic() - begun_s)
            if left_s <= 0:
                raise StillAtWork(threads, request.timeout_s)
        request.sleep(min(tick_s, left_s))
        tick_s = min(_LONGEST_TICK_S, tick_s * _GROWTH)


def _tell_rest(store: Store, thread: ThreadId, on_rest: Callable[[AtRest], None]) -> bool:
    # The locks first: what is recorded after they were found free is recorded by nobody.
    is_busy = is_at_work(store, thread)
    head = get_head(store, thread)
    if is_busy and not head.archived:
        return False
    snapshot = read_snapshot(store, head.commit)
    record = snapshot.record
    waiting = snapshot.get_present().waiting if record.status == "waiting" else None
    on_rest(AtRest(record.workflow, thread, record.node, record.status, waiting))
    return True
