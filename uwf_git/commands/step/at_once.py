"""Run work on several branches at once, each in a thread of Python: they wait for agents."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from uwf_git.agents.group import cancellable, wait_for_one

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_at_once(
    work: Callable[[Item], Result], items: Sequence[Item], *, jobs: int
) -> list[Result]:
    """Return what *work* returns for *items*, *jobs* at a time; Ctrl-C interrupts all."""
    if len(items) == 1:
        return [work(items[0])]
    cancelled = threading.Event()

    def run(item: Item) -> Result:
        with cancellable(cancelled):
            return work(item)

    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        futures = [pool.submit(run, item) for item in items]
        try:
            return [wait_for_one([future]).pop().result() for future in futures]
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
