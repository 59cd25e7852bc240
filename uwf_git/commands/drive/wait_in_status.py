"""Sleep while a thread stays in a status: its ref is polled, so a pause or an end takes effect."""

from collections.abc import Callable

from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Status
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, find_head
from uwf_git.store.threads.snapshot import read_snapshot

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

    *until* is a clock, and a time in its milliseconds. The caller names the status: a pause that
    comes before the first look must not go unnoticed.
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
