"""Benchmark of a step at different depths, and the project's limit.

The thread is put back after each turn, so each turn starts at the same depth; threads of different
depth take turns.
"""

from collections.abc import Mapping

from bench.cold import step_process
from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.timing import Case, Sample, ratio, take_turns, time_call
from bench.world import Thread

_STEPS_A_ROUND = 4
"""In one process, where a step is quick, and noise is large beside it."""

_LIMIT = Limit("over_the_first", 1.2)


def measure_depth(bench: Bench) -> list[Table]:
    """Compare steps at several depths: in one process, with and without fsync, and cold."""
    scale = bench.scale
    threads = {f"depth {depth:,}": bench.thread_at(depth) for depth in scale.depths}
    packed = bench.packed_thread_at(scale.large[0])
    if packed is not None:
        threads[f"depth {scale.large[0]:,}, after git gc"] = packed
    rounds = scale.depth_rounds
    steps = rounds * _STEPS_A_ROUND
    fast = _table("steps in one process, uwf.fsync=false", _cases(threads), rounds=steps)
    # From here on with fsync, as it is by default; it is a setting of the store.
    threads = {name: bench.durable(thread) for name, thread in threads.items()}
    durable = _table("steps in one process", _cases(threads), rounds=steps)
    shallow, _, deep, *_ = threads
    cold = {name: step_process(bench.world, threads[name]) for name in (shallow, deep)}
    return [fast, durable, _table("cold `uwf thread step`", cold, rounds=rounds)]


def step_case(thread: Thread) -> Case:
    """Return the case of one step in this process; the thread is put back after each turn."""

    def case() -> Sample:
        with thread.kept_in_place():
            return time_call(thread.step)

    return case


def _cases(threads: Mapping[str, Thread]) -> dict[str, Case]:
    return {name: step_case(thread) for name, thread in threads.items()}


def _table(title: str, cases: Mapping[str, Case], *, rounds: int) -> Table:
    series = take_turns(cases, rounds=rounds, warm_up=2)
    first = next(iter(series.values()))
    rows = [
        Row(
            name,
            {**each.figures(), "over_the_first": ratio(each, first)},
            () if each is first else (_LIMIT,),
            each.failure,
        )
        for name, each in series.items()
    ]
    return Table(f"{title}, {rounds} rounds", rows)
