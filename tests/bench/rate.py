"""Benchmark of steps per second in one process, with and without fsync, and of forced writes."""

import os
from functools import partial
from unittest import mock

from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.timing import ratio, take_turns, time_call
from bench.world import Thread, begin_endless, make_store

_MS = 1000
_COUNTED_STEPS = 20

_DURABLE, _NOT_DURABLE = "bare repository", "bare repository, uwf.fsync=false"
_OF_DURABLE = "of_durable"
_LIMIT = Limit(_OF_DURABLE, 0.8)


def measure_rate(bench: Bench) -> list[Table]:
    """Compare steps in one process with fsync and without."""
    world, steps = bench.world, bench.scale.rate_steps
    stores = {
        _DURABLE: make_store(world, "rate-fsync", fsync=True),
        _NOT_DURABLE: make_store(world, "rate-no-fsync", fsync=False),
    }
    threads = {name: begin_endless(world, store) for name, store in stores.items()}
    series = take_turns(
        {name: partial(time_call, thread.step) for name, thread in threads.items()},
        rounds=steps,
        warm_up=10,
    )
    rows = []
    for name, each in series.items():
        figures = {
            **each.figures(),
            "steps_per_s": _MS * len(each.samples) / each.total_ms,
            "fsyncs_per_step": _count_fsyncs(threads[name]),
        }
        if name == _DURABLE:
            rows.append(Row(name, figures))
        else:
            part = ratio(each, to=series[_DURABLE])
            rows.append(Row(name, {**figures, _OF_DURABLE: part}, [_LIMIT]))
    return [Table(f"{steps} steps in one process, the player does nothing", rows)]


def _count_fsyncs(thread: Thread) -> float:
    with mock.patch.object(os, "fsync", wraps=os.fsync) as force:
        for _ in range(_COUNTED_STEPS):
            thread.step()
    return force.call_count / _COUNTED_STEPS
