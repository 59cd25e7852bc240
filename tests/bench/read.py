"""Reading: what decisions and whole threads cost to read.

Owns: the questions that are asked of a deep thread. Knows nothing of: clocks.
"""

from bench.deep import Bench
from bench.report import Row, Table
from bench.timing import Case, CaseFailed, Sample, Series, take_turns, time_call
from bench.world import ASKS_HISTORY, ASKS_META, Thread

from uwf_git.agents.fence import run_fenced
from uwf_git.commands.decide import decide_next
from uwf_git.commands.thread_read import read_thread
from uwf_git.commands.thread_show import show_thread
from uwf_git.errors import UwfError
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.heads import get_head
from uwf_git.store.snapshot import read_snapshot

_DECISIONS_A_ROUND = 5
"""A decision is quick; the commands that read a whole thread are not."""


def measure_read(bench: Bench) -> list[Table]:
    """Measure decisions and the commands that look at every step, all in this process."""
    large, rounds = bench.scale.large, bench.scale.read_rounds
    decisions: dict[str, Case] = {"the fence alone": _timed_fence}
    first = bench.thread_at(large[0])
    decisions["no condition"] = _decision(first, None)
    decisions["a condition on meta"] = _decision(first, ASKS_META)
    for depth in large:
        name = f"a condition on history, depth {depth:,}"
        decisions[name] = _decision(bench.thread_at(depth), ASKS_HISTORY)
    threads = {f"depth {depth:,}": bench.thread_at(depth) for depth in large}
    packed = bench.packed_thread_at(large[0])
    if packed is not None:
        threads[f"depth {large[0]:,}, after git gc"] = packed
    readings: dict[str, Case] = {}
    for name, thread in threads.items():
        readings[f"thread show, {name}"] = _showing(thread, full=False)
        readings[f"thread show --full, {name}"] = _showing(thread, full=True)
        readings[f"thread read, {name}"] = _reading(thread)
    return [
        _table("decisions", decisions, rounds=rounds * _DECISIONS_A_ROUND),
        _table("whole threads", readings, rounds=rounds),
    ]


def _table(title: str, cases: dict[str, Case], *, rounds: int) -> Table:
    series = take_turns(cases, rounds=rounds, warm_up=1)
    return Table(f"{title}, in one process, {rounds} rounds", [*map(_row, series.items())])


def _row(named: tuple[str, Series]) -> Row:
    name, series = named
    return Row(name, series.figures(), failure=series.failure)


def _timed_fence() -> Sample:
    return time_call(lambda: run_fenced(lambda: True))


def _decision(thread: Thread, position: str | None) -> Case:
    snapshot = read_snapshot(thread.store, get_head(thread.store, thread.id).commit)
    present = snapshot.get_present()
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    if position is not None:
        present = present._replace(role=position)

    def case() -> Sample:
        try:
            return time_call(lambda: decide_next(snapshot, present, workflow))
        except UwfError as error:
            raise CaseFailed(str(error)) from error

    return case


def _showing(thread: Thread, *, full: bool) -> Case:
    return lambda: time_call(lambda: show_thread(thread.store, thread.id, full=full))


def _reading(thread: Thread) -> Case:
    return lambda: time_call(lambda: read_thread(thread.store, thread.id))
