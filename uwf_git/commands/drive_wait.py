"""Waiting in a drive: sleep, and hear it if somebody changes the thread meanwhile.

Owns: how often the thread is looked at. Knows nothing of: why there is a wait.
Always true: a look is a look at a ref, without a lock; the sum of what is slept decides how long,
so that a clock which is set makes no retry late. Only the end of a limit is a time of the clock.
"""

from collections.abc import Callable

from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import find_head
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store

_TICK_S = 0.2
_LONGEST_TICK_S = 1.0

# A wait that is longer than a retry's is looked at less often.
_LONG_S = 60.0
_MS = 1000


def wait_while_alike(
    store: Store,
    thread: ThreadId,
    seconds: float,
    *,
    until: tuple[Callable[[], int], int],
    sleep: Callable[[float], None],
) -> None:
    """Sleep *seconds*, and until the clock says so, as long as the thread's status stays the same.

    *until* is the clock, and the time in its milliseconds.
    """
    now_ms, until_ms = until
    head = find_head(store, thread)
    slept_s = 0.0
    while True:
        left_s = max(seconds - slept_s, (until_ms - now_ms()) / _MS)
        if left_s <= 0:
            return
        tick_s = min(left_s, _LONGEST_TICK_S if left_s > _LONG_S else _TICK_S)
        sleep(tick_s)
        slept_s += tick_s
        seen, head = head, find_head(store, thread)
        if head == seen:
            continue
        if head is None or seen is None or head.archived:
            return
        before, now = (read_snapshot(store, each.commit).record for each in (seen, head))
        if before.status != now.status:
            return
