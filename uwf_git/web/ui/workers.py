"""Threads for what blocks: reading and writing the store.

They are daemons: when the server ends, a call that still waits (for a killed agent, say) does not
hold it up. What such a call records is whole or not there, as after a crash.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from uwf_git.errors import Conflict

Answer = TypeVar("Answer")


class TooBusy(Conflict):
    """More requests wait than a person's browser makes."""

    code = "too-busy"

    def __init__(self) -> None:
        super().__init__("the server has too much to do", hint="try again in a moment")


class Workers:
    """Some threads, and the calls that wait for one."""

    def __init__(self, count: int, *, most_waiting: int = 500) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._most_waiting = most_waiting
        self._count, self._begun = count, 0

    async def run(self, function: Callable[[], Answer]) -> Answer:
        if self._calls.qsize() >= self._most_waiting:
            raise TooBusy
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()

        def call() -> None:
            answer: Any = None
            error: BaseException | None = None
            try:
                answer = function()
            except BaseException as raised:  # noqa: BLE001 (the caller gets it)
                error = raised
            # The loop may have ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, future, answer, error)

        self._calls.put(call)
        self._begin_thread()
        return await future

    def _begin_thread(self) -> None:
        if self._begun < self._count:
            self._begun += 1
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._calls.get()()


def _settle(future: "asyncio.Future[Any]", answer: Any, error: BaseException | None) -> None:
    if future.done():
        # Who asked has gone.
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)
