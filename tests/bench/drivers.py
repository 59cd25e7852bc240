"""Benchmark of many threads in the background: starting and finishing them, memory, lost steps.

All drivers have started before the first agent answers, so they finish at the same time.
"""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.world import Thread, World, begin_endless, begin_thread, find_program, make_store

from uwf_git.store.git.config import set_config
from uwf_git.store.threads.local_files import find_driver

_STEPS = 3
_AT_ONCE = 8
_LONGEST_S = 1800

# The last line is what `begin_endless` wants of a role.
_AGENT = """\
#!/bin/sh
echo ran >>{ran}
until [ -e {go} ]; do sleep 1; done
printf '{{"meta":{{"n":1}}}}'
"""


def measure_drivers(bench: Bench) -> list[Table]:
    """Drive many threads at once, each in its own process, and count lost steps."""
    world, size = bench.world, bench.scale.drivers
    store = make_store(world, "drivers", fsync=True)
    # Packing would go on in the background when all is measured.
    set_config(os.path.join(store.path, "config"), "gc.auto", "0")
    first = begin_endless(world, store)
    workflow = first.snapshot().record.workflow
    threads = [first, *(begin_thread(world, store, workflow) for _ in range(size - 1))]
    agent = world.write("waiting-agent", _AGENT.format(ran=world.path("ran"), go=world.path("go")))
    bench.tell(f"{size} drivers")
    began = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda thread: _start(world, thread, agent), threads))
    started = time.monotonic()
    memory = [each for each in map(_memory_kb, threads) if each is not None]
    with open(world.path("go"), "w", encoding="utf-8"):
        finishing = time.monotonic()
    _uwf(world, first, "wait", *(thread.id for thread in threads), f"--timeout={_LONGEST_S}")
    ended = time.monotonic()
    ran = Path(world.path("ran")).read_text(encoding="utf-8")
    figures: dict[str, float | None] = {
        "start_s": started - began,
        "finish_s": ended - finishing,
        "driver_kb": sum(memory) / len(memory) if memory else None,
        "steps_lost": size * _STEPS - sum(each.snapshot().record.depth for each in threads),
        "agents_twice": ran.count("ran\n") - size * _STEPS,
    }
    limits = (Limit("steps_lost", 0), Limit("agents_twice", 0))
    return [
        Table(
            f"{size} threads in the background, {_STEPS} steps each",
            [Row("all of them at once", figures, limits)],
        )
    ]


def _start(world: World, thread: Thread, agent: str) -> None:
    _uwf(
        world, thread, "run", thread.id, f"--agent={agent}", f"--max-steps={_STEPS}", "--background"
    )


def _uwf(world: World, thread: Thread, *words: str) -> None:
    argv = (find_program("uwf"), "--repo", thread.store.path, "thread", *words)
    subprocess.run(argv, env=world.environ, check=True, stdout=subprocess.DEVNULL)


def _memory_kb(thread: Thread) -> float | None:
    """Return the private memory of a driver; None where there is no /proc."""
    driver = find_driver(thread.store, thread.id) or {}
    try:
        with open(f"/proc/{driver.get('pid')}/smaps_rollup", encoding="ascii") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    return float(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")))
