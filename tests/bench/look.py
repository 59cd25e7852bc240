"""Benchmark of what people look at: lists, the live view, pictures, reports."""

import json
from collections.abc import Callable, Mapping
from functools import partial

from bench.archived import add_crowd
from bench.deep import Bench
from bench.naive import read_states
from bench.report import Table
from bench.timing import compare_with_first, take_turns, time_call
from bench.world import Thread, make_store, reopen_store

from uwf_git.commands.inspect.graph import view_report
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows, summarize_thread
from uwf_git.commands.inspect.overview import ThreadWatch
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.workflow.build import picture_source
from uwf_git.engine.picture.draw import FORMS, draw
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import get_head, list_threads
from uwf_git.web.report import render_report

_LISTED, _ROLES, _REPORTED = 1000, 40, 200
_SHOWN = 50
"""Rows of a screen."""

_NOW_MS = 1_800_000_000_000


def measure_look(bench: Bench) -> list[Table]:
    """Compare each with the least that it has to read; all in this process."""
    rounds = bench.scale.depth_rounds
    return [
        _lists(bench, rounds=rounds),
        _pictures("graph", _graph(_ROLES), rounds=rounds),
        _pictures("tree of containers", _tree(_ROLES), rounds=rounds),
        _reports(bench.thread_at(_REPORTED), rounds=bench.scale.read_rounds),
    ]


def _lists(bench: Bench, *, rounds: int) -> Table:
    """Compare lists of many threads with dulwich's reading of the same commits."""
    store = make_store(bench.world, "look", fsync=False)
    bench.tell(f"{_LISTED:,} active threads")
    add_crowd(store, size=_LISTED, is_active=True)
    store = reopen_store(bench.world, store.path, fsync=False)
    tips = [get_head(store, each).commit for each in list_threads(store, archived=False)]
    environ = bench.world.environ
    watch = ThreadWatch(store, (), {}, now_ms=_NOW_MS)
    rows = watch.look()

    def opened() -> Store:
        return open_store(store.path, environ=environ)

    def summarize() -> None:
        store = opened()
        for row in rows[:_SHOWN]:
            summarize_thread(store, row)

    actions: dict[str, Callable[[], object]] = {
        "naive: commits, trees and now.json": lambda: read_states(store.path, tips),
        "thread list": lambda: list_thread_rows(opened(), ListRequest()),
        f"what a person sees besides, of {_SHOWN}": summarize,
        "watch: the first look": lambda: ThreadWatch(opened(), (), {}, now_ms=_NOW_MS).look(),
        "watch: a look where nothing has happened": watch.look,
    }
    limits = {"thread list": 1, "watch: a look where nothing has happened": 0.02}
    title = f"{_LISTED:,} threads, in one process, {rounds} rounds"
    return _compare(title, actions, "over_naive", limits=limits, rounds=rounds)


def _pictures(what: str, source: str, *, rounds: int) -> Table:
    """Compare drawing with the reading of the workflow's file."""
    content = source.encode()
    subject = picture_source(content, path=None)
    drawings = {f"drawing, as {form}": partial(draw, subject, form) for form in FORMS}
    actions: dict[str, Callable[[], object]] = {
        "reading its file": lambda: picture_source(content, path=None),
        **drawings,
    }
    limits = dict.fromkeys(drawings, 1.0)
    title = f"a picture of {_ROLES} roles, a {what}, in one process, {rounds} rounds"
    return _compare(title, actions, "over_reading", limits=limits, rounds=rounds)


def _reports(thread: Thread, *, rounds: int) -> Table:
    """Compare a report with the reading of all that it shows."""

    def opened() -> Thread:
        return thread._replace(store=open_store(thread.store.path))

    actions: dict[str, Callable[[], object]] = {
        "thread show --full": lambda: show_thread(opened().store, thread.id, full=True),
        "the document of a report": lambda: view_report(opened().store, thread.id, {}),
        "thread report": lambda: render_report(view_report(opened().store, thread.id, {})),
    }
    title = f"a report of {_REPORTED} steps, in one process, {rounds} rounds"
    return _compare(title, actions, "over_show", limits={"thread report": 5}, rounds=rounds)


def _compare(
    title: str,
    actions: Mapping[str, Callable[[], object]],
    figure: str,
    *,
    limits: Mapping[str, float],
    rounds: int,
) -> Table:
    """Measure *actions* in turn, each as a multiple of the first."""
    cases = {name: partial(time_call, action) for name, action in actions.items()}
    series = take_turns(cases, rounds=rounds, warm_up=1)
    return Table(title, compare_with_first(series, figure, limits))


def _graph(roles: int) -> str:
    """Return a workflow whose roles go on, skip one, or go back."""
    names = [f"role{number}" for number in range(roles)]
    moderator = [{"from": "$START", "transitions": [{"to": names[0]}]}]
    for number, name in enumerate(names):
        transitions: list[dict[str, str]] = []
        if number + 2 < roles:
            transitions.append({"to": names[number + 2], "condition": "meta.ok = true"})
        if number % 5 == 4:
            transitions.append({"to": names[number - 4], "condition": "meta.again = true"})
        transitions.append({"to": names[number + 1] if number + 1 < roles else "$END"})
        moderator.append({"from": name, "transitions": transitions})
    return _file(names, {"moderator": {"graph": moderator}})


def _tree(roles: int) -> str:
    """Return a workflow of pairs at once, one after the other, in a loop."""
    names = [f"role{number}" for number in range(roles)]
    pairs = [
        {
            "type": "parallel",
            "nodes": [{"type": "agent", "agentId": each} for each in names[number : number + 2]],
        }
        for number in range(0, roles, 2)
    ]
    sequence = {"type": "sequential", "nodes": pairs}
    loop = {"type": "loop", "condition": "true", "maxIterations": 3, "nodes": [sequence]}
    return _file(names, {"root": loop})


def _file(names: list[str], moves: Mapping[str, object]) -> str:
    """Return a workflow's file, as JSON, which YAML can read."""
    role = {"description": "Works.", "systemPrompt": "Work."}
    file = {"name": "drawn", "description": "Drawn.", "roles": dict.fromkeys(names, role)}
    return json.dumps({**file, **moves})
