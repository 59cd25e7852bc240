"""Benchmark of reading: decisions and whole threads with many steps, and the project's limit."""

from collections.abc import Callable, Sequence

from bench.deep import Bench
from bench.naive import read_commits_and_steps, read_steps
from bench.report import Limit, Row, Table
from bench.timing import (
    Case,
    CaseFailed,
    Sample,
    Series,
    find_peak_mib,
    ratio,
    take_turns,
    time_call,
    time_process,
)
from bench.world import ASKS_HISTORY, ASKS_META, Thread, find_program
from commands.world import read_thread

from uwf_git.agents.limited_fork import run_limited
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.turn.next_move import decide_next
from uwf_git.commands.verify.verify import verify
from uwf_git.errors import UwfError
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import open_store

_DECISIONS_A_ROUND = 5
"""A decision is quick; the commands that read a whole thread are not."""

_LIMIT = Limit("over_naive", 1.5)
_VERIFY = Limit("over_naive", 12)
"""`uwf verify` makes each commit again, and checks each node."""

_NONE, _PLAIN = "no condition", "a plain condition on meta"
_MORE = Limit("more_ms", 0.5)
"""How much more a plain condition takes than none."""


def measure_read(bench: Bench) -> list[Table]:
    """Measure decisions and the commands that look at every step, all in this process."""
    large, rounds = bench.scale.large, bench.scale.read_rounds
    decisions: dict[str, Case] = {"the fence alone": _timed_fence}
    first = bench.thread_at(large[0])
    decisions[_NONE] = _decision(first, None)
    decisions[_PLAIN] = _decision(first, ASKS_META)
    for depth in large:
        name = f"a condition on history, depth {depth:,}"
        decisions[name] = _decision(bench.thread_at(depth), ASKS_HISTORY)
    tables = [_decisions(decisions, rounds=rounds * _DECISIONS_A_ROUND)]
    threads: dict[str, Thread | None] = {}
    for depth in large:
        threads[f"{depth:,} steps, loose"] = bench.thread_at(depth)
        threads[f"{depth:,} steps, after git gc"] = bench.packed_thread_at(depth)
    for name, thread in threads.items():
        if thread is not None:
            # In short ones starting a fence or opening a store is what takes the time.
            limits = (_LIMIT,) if name.startswith(f"{large[-1]:,} ") else ()
            tables.append(_whole_thread(name, thread, rounds=rounds, limits=limits))
            tables.append(_processes(name, bench, thread))
    return tables


def _whole_thread(name: str, thread: Thread, *, rounds: int, limits: Sequence[Limit]) -> Table:
    """Compare what reads a whole thread with dulwich's reading of the same objects."""
    steps, everything = "naive: steps", "naive: commits and steps"
    measured: dict[str, tuple[Callable[[Thread], object], str | None]] = {
        steps: (read_steps, None),
        everything: (read_commits_and_steps, None),
        "a condition on history": (_decide, steps),
        "thread context": (lambda opened: get_context(opened.store, opened.id), steps),
        "thread show --full": (
            lambda opened: show_thread(opened.store, opened.id, full=True),
            steps,
        ),
        "thread read": (lambda opened: read_thread(opened.store, opened.id), everything),
        "verify": (lambda opened: verify(opened.store, [opened.id]), everything),
        "thread show": (lambda opened: show_thread(opened.store, opened.id), None),
        "thread read --last 10": (
            lambda opened: read_thread(opened.store, opened.id, last=10),
            None,
        ),
    }
    cases = {what: _opened(thread, action) for what, (action, _naive) in measured.items()}
    series = take_turns(cases, rounds=rounds, warm_up=1)
    rows = []
    for what, (_action, naive) in measured.items():
        figures: dict[str, float | None] = dict(series[what].figures())
        if naive is not None:
            figures[_LIMIT.figure] = ratio(series[what], series[naive])
        held = (_VERIFY,) if what == "verify" and limits else limits
        rows.append(Row(what, figures, held if naive else (), series[what].failure))
    return Table(f"{name}, in one process, {rounds} rounds", rows)


def _opened(thread: Thread, action: Callable[[Thread], object]) -> Case:
    """Return the case of *action* on the thread in a store that was opened for it."""

    def case() -> Sample:
        opened = thread._replace(store=open_store(thread.store.path))
        return time_call(lambda: action(opened))

    return case


def _processes(name: str, bench: Bench, thread: Thread) -> Table:
    """Report how much memory whole processes take."""
    rows = []
    for words in (("show", "--full"), ("context",), ("read",)):
        argv = (find_program("uwf"), "--repo", thread.store.path, "thread", *words, thread.id)
        environ, log = bench.world.environ, bench.world.path("log")
        figures: dict[str, float | None] = dict(time_process(argv, environ, log=log)._asdict())
        figures["peak_mib"] = find_peak_mib(argv, environ, log=log)
        rows.append(Row(f"uwf thread {' '.join(words)}", figures))
    return Table(f"{name}, cold processes", rows)


def _decisions(cases: dict[str, Case], *, rounds: int) -> Table:
    series = take_turns(cases, rounds=rounds, warm_up=1)
    rows = [Row(name, each.figures(), failure=each.failure) for name, each in series.items()]
    rows = [_beyond(row, series[_NONE]) if row.name == _PLAIN else row for row in rows]
    return Table(f"decisions, in one process, {rounds} rounds", rows)


def _beyond(row: Row, without: Series) -> Row:
    median_ms = row.figures.get("median_ms")
    if median_ms is None or without.failure is not None:
        return row
    more = {_MORE.figure: median_ms - without.median_ms}
    return row._replace(figures={**row.figures, **more}, limits=(_MORE,))


def _timed_fence() -> Sample:
    return time_call(lambda: run_limited(lambda: True))


def _decision(thread: Thread, position: str | None) -> Case:
    decide = _prepared(thread, position)

    def case() -> Sample:
        try:
            return time_call(decide)
        except UwfError as error:
            raise CaseFailed(str(error)) from error

    return case


def _decide(thread: Thread) -> str:
    return _prepared(thread, ASKS_HISTORY)()


def _prepared(thread: Thread, position: str | None) -> Callable[[], str]:
    snapshot = thread.snapshot()
    present = snapshot.get_present()
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    if position is not None:
        present = present._replace(role=position)
    return lambda: decide_next(snapshot, present, workflow).role
