"""The rate: how many steps one process takes in a second when agents cost nothing.

Owns: the kinds of store that are compared. Knows nothing of: clocks.
"""

from bench.deep import Bench
from bench.report import Row, Table
from bench.timing import Case, take_turns, time_call
from bench.world import Thread, begin_endless, make_store

from uwf_git.store.store import memory_store

_MS = 1000


def measure_rate(bench: Bench) -> list[Table]:
    """Compare steps in one process on a disk with fsync, without, and in memory."""
    world, steps = bench.world, bench.scale.rate_steps
    stores = {
        "bare repository": make_store(world, "rate-fsync", fsync=True),
        "bare repository, uwf.fsync=false": make_store(world, "rate-no-fsync", fsync=False),
        "in memory": memory_store(),
    }
    threads = {name: begin_endless(world, store) for name, store in stores.items()}
    series = take_turns(
        {name: _step_case(thread) for name, thread in threads.items()}, rounds=steps, warm_up=10
    )
    rows = [
        Row(name, {**each.figures(), "steps_per_s": _MS * len(each.samples) / each.total_ms})
        for name, each in series.items()
    ]
    return [Table(f"{steps} steps in one process, the player does nothing", rows)]


def _step_case(thread: Thread) -> Case:
    return lambda: time_call(thread.step)
