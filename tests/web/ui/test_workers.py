"""Calls in threads."""

import asyncio
import threading

import pytest
from refusing import refuses

from uwf_git.errors import Conflict
from uwf_git.web.ui.site import Workers


def test_too_many_waiting_calls_are_refused() -> None:
    async def work() -> None:
        workers, gate = Workers(1, most_waiting=1), threading.Event()
        held = asyncio.create_task(workers.run(gate.wait))
        waiting = asyncio.create_task(workers.run(lambda: 2))
        refused = 0
        while not refused:
            await asyncio.sleep(0)
            try:
                more = asyncio.create_task(workers.run(lambda: 3))
                await asyncio.wait_for(asyncio.shield(more), 0.01)
            except Conflict:
                refused += 1
            except TimeoutError:
                continue
        gate.set()
        assert await held
        assert await waiting == 2

    asyncio.run(work())


def test_a_call_that_nobody_waits_for_any_more_keeps_its_place() -> None:
    async def work() -> None:
        workers, gate = Workers(1, most_waiting=0), threading.Event()
        held = asyncio.create_task(workers.run(gate.wait))
        await asyncio.sleep(0)
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        try:
            with refuses("too-busy"):
                await asyncio.wait_for(workers.run(lambda: 1), 10)
        finally:
            gate.set()

    asyncio.run(work())
