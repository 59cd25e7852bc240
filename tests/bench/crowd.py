"""Benchmark of commands in a store with very many ended threads, and the project's limits for them.

Each command runs alternately in a store with the archived threads and in one without them; each
of the two stores has one active thread.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from bench.archived import Crowd, add_crowd
from bench.cold import step_process
from bench.deep import Bench
from bench.naive import read_states
from bench.report import Limit, Row, Table
from bench.timing import (
    Case,
    Series,
    compare_with_first,
    ratio,
    take_turns,
    time_call,
    time_process,
)
from bench.world import Thread, World, begin_endless, find_program, make_store

from uwf_git import TaskFilter, TaskRuntime
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head

_FIGURE = "over_empty"

_LOOKS = 1000
_MOST_OVER_NAIVE = 1.5


class _Verb(NamedTuple):
    """A command, in a store without the crowd and in one with it."""

    empty: Case
    crowded: Case
    most: float | None
    """The project's limit: how many times as long it may take."""


def measure_crowd(bench: Bench) -> list[Table]:
    """Compare processes in a store with very many archived threads and in one with none."""
    world, scale = bench.world, bench.scale
    empty = begin_endless(world, make_store(world, "crowd-none", fsync=True))
    crowded = begin_endless(world, make_store(world, "crowd", fsync=True))
    bench.tell(f"{scale.crowd:,} archived threads")
    crowd = add_crowd(crowded.store, size=scale.crowd)
    first = _first_lookups(world, crowded, crowd)
    verbs = _verbs(world, empty, crowded, crowd)
    cases = {
        name: case
        for verb, both in verbs.items()
        for name, case in ((f"{verb}, empty store", both.empty), (verb, both.crowded))
    }
    series = take_turns(cases, rounds=scale.rounds, warm_up=scale.warm_up)
    rows = [row for name, verb in verbs.items() for row in _rows(name, verb, series)]
    title = f"beside {scale.crowd:,} archived threads in packed-refs"
    return [
        Table(f"{title}: the first look-ups of a node", first),
        Table(f"{title}: cold processes, {scale.rounds} rounds", rows),
        _looks(world, crowded.store, title, rounds=scale.rounds),
    ]


def _looks(world: World, store: Store, title: str, *, rounds: int) -> Table:
    """Compare looks at many threads with dulwich's reading of the same objects."""
    runtime = TaskRuntime(store.path, environ=world.environ, cwd=world.root)
    tasks = runtime.list(TaskFilter(ended=True, limit=_LOOKS))
    tips = [get_head(store, ThreadId(task.task_id)).commit for task in tasks]
    query = "query() of each"
    actions: dict[str, Callable[[], object]] = {
        "naive: commits, trees and now.json": lambda: read_states(store.path, tips),
        query: lambda: [task.query() for task in tasks],
        "list of so many rows": lambda: runtime.list(TaskFilter(ended=True, limit=_LOOKS)),
    }
    series = take_turns(
        {name: partial(time_call, action) for name, action in actions.items()},
        rounds=rounds,
        warm_up=1,
    )
    rows = compare_with_first(series, "over_naive", {query: _MOST_OVER_NAIVE})
    return Table(f"{title}: looks at {len(tasks):,} of them, in one process", rows)


def _first_lookups(world: World, crowded: Thread, crowd: Crowd) -> list[Row]:
    """Time, in this order, look-ups that find less and less not yet looked at."""
    nodes = {
        "json-cas get, of the newest archived thread": crowd.newest,
        "json-cas get, of the oldest": crowd.oldest,
        "json-cas get, of one between": crowd.middle,
    }
    get = {name: _process(world, crowded, "json-cas", "get", node) for name, node in nodes.items()}
    return [Row(name, {"wall_ms": case().wall_ms}) for name, case in get.items()]


def _verbs(world: World, empty: Thread, crowded: Thread, crowd: Crowd) -> dict[str, _Verb]:
    record = empty.snapshot().record

    def both(*words: str, most: float | None, ends: tuple[str, ...] = ("", "")) -> _Verb:
        here, there = ([end] if end else [] for end in ends)
        return _Verb(
            _process(world, empty, *words, *here), _process(world, crowded, *words, *there), most
        )

    return {
        "uwf thread step": _Verb(step_process(world, empty), step_process(world, crowded), 1.2),
        "uwf thread show": both("uwf", "thread", "show", most=1.2, ends=(empty.id, crowded.id)),
        "uwf thread list --all": both("uwf", "thread", "list", "--all", most=3),
        "json-cas get": both("json-cas", "get", most=1.5, ends=(record.node, crowd.oldest)),
        "uwf workflow show HASH": both(
            "uwf", "workflow", "show", most=None, ends=(record.workflow, crowd.workflow)
        ),
    }


def _process(world: World, thread: Thread, program: str, *words: str) -> Case:
    argv = (find_program(program), "--repo", thread.store.path, *words)
    return lambda: time_process(argv, world.environ, log=world.path("log"))


def _rows(name: str, verb: _Verb, series: Mapping[str, Series]) -> list[Row]:
    empty, crowded = series[f"{name}, empty store"], series[name]
    figures: dict[str, float | None] = {**crowded.figures(), _FIGURE: ratio(crowded, empty)}
    limits = () if verb.most is None else (Limit(_FIGURE, verb.most),)
    return [
        Row(f"{name}, empty store", empty.figures(), (), empty.failure),
        Row(name, figures, limits, crowded.failure),
    ]
