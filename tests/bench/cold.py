"""Benchmark of cold processes: how long whole commands take, and the project's limits for them."""

import sys
from collections.abc import Mapping

from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.timing import Case, Series, ratio, take_turns, time_process
from bench.world import Thread, World, begin_thread, find_program

from uwf_git.commands.workflow.build import put_workflow
from uwf_git.store.store import Store, create_store, default_path

PASS = "python -c pass"
BASELINE = "python -c 'import click, dulwich.repo'"

_SHOW = (Limit("over_baseline", 1.5),)
_STEP = (Limit("over_baseline", 2.5), Limit("over_pass", 20))

# The first step is taken without a condition, those after it with one.
_WORKFLOW = """\
name: {name}
roles:
  worker:
    systemPrompt: Work.
    outputSchema: {schema}
moderator:
  - {{from: $START, to: worker}}
  - {{from: worker, to: worker, condition: meta.n = 1}}
  - {{from: worker, to: $END}}
"""
_PLAIN = "{type: object, properties: {n: {type: integer}}, required: [n]}"
_STRICT = "{type: object, propertyNames: {pattern: '^[a-z]+$'}, required: [n]}"


def measure_cold(bench: Bench) -> list[Table]:
    """Compare processes from their start to their end."""
    world, scale = bench.world, bench.scale
    cases = {
        PASS: _process(world, sys.executable, "-c", "pass"),
        BASELINE: _process(world, sys.executable, "-c", "import click, dulwich.repo"),
        **_uwf_cases(world),
    }
    series = take_turns(cases, rounds=scale.rounds, warm_up=scale.warm_up)
    return [Table(f"cold processes, {scale.rounds} rounds", [_row(name, series) for name in cases])]


def step_process(world: World, thread: Thread, environ: Mapping[str, str] | None = None) -> Case:
    """Return the case of one `uwf thread step`; the thread is put back after each turn."""
    words = ("--repo", thread.store.path, "thread", "step", thread.id)
    return thread.in_place(_process(world, find_program("uwf"), *words, environ=environ))


def _uwf_cases(world: World) -> dict[str, Case]:
    store = create_store(default_path(world.environ), environ=world.environ)
    plain = _thread(world, store, "plain", schema=_PLAIN)
    strict = _thread(world, store, "strict", schema=_STRICT)
    asking = _thread(world, store, "asking", schema=_PLAIN)
    _process(world, find_program("uwf"), "thread", "step", asking.id)()
    node = asking.snapshot().record.node
    no_fsync = world.configured("fsync=false")
    uwf = find_program("uwf")
    return {
        "uwf --help": _process(world, uwf, "--help"),
        "uwf thread show": _process(world, uwf, "thread", "show", asking.id),
        "uwf thread step, no condition": step_process(world, plain),
        "uwf thread step, no condition, no fsync": step_process(world, plain, no_fsync),
        "uwf thread step, a JSONata condition": step_process(world, asking),
        "uwf thread step, needs jsonschema": step_process(world, strict),
        "json-cas get": _process(world, find_program("json-cas"), "get", node),
    }


def _thread(world: World, store: Store, name: str, *, schema: str) -> Thread:
    put_workflow(store, world.caller, _WORKFLOW.format(name=name, schema=schema).encode())
    return begin_thread(world, store, name)


def _process(world: World, *argv: str, environ: Mapping[str, str] | None = None) -> Case:
    return lambda: time_process(argv, environ or world.environ, log=world.path("log"))


def _row(name: str, series: Mapping[str, Series]) -> Row:
    own = series[name]
    figures: dict[str, float | None] = dict(own.figures())
    if figures:
        figures["over_baseline"] = ratio(own, series[BASELINE])
        figures["over_pass"] = ratio(own, series[PASS])
    return Row(name, figures, _limits(name), own.failure)


def _limits(name: str) -> tuple[Limit, ...]:
    if name.startswith("uwf thread step"):
        return _STEP
    return _SHOW if name.startswith("uwf thread show") else ()
