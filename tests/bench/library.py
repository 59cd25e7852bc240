"""Benchmark of the library: a start beside a step, and functions that read all of their history."""

from collections.abc import Mapping

from bench.deep import Bench
from bench.depth import function_case, take_step
from bench.report import Limit, Row, Table
from bench.timing import Case, Sample, ratio, take_turns, time_call

from uwf_git import AgentContext, TaskRuntime

_STARTS = 40
"""Rounds; a start and a step are quick, and noise is large beside them."""

_WORKFLOW = """\
name: two-turns
roles:
  writer: {description: Writes., outputSchema: {type: object}}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: writer, when: depth < 2}
  - {from: writer, to: $END}
"""


def measure_library(bench: Bench) -> list[Table]:
    """Compare a start with a step, and steps that sum all contents with steps that read none."""
    return [_starts(bench), *(_reading(bench, depth) for depth in bench.scale.depths[1:])]


def _starts(bench: Bench) -> Table:
    world = bench.world
    runtime = TaskRuntime(
        world.path("library.git"), create=True, players={"writer": _sum}, environ=world.environ
    )
    runtime.put(_WORKFLOW)
    task = runtime.start("two-turns", "Go.")

    def start() -> Sample:
        def begin() -> None:
            nonlocal task
            task = runtime.start("two-turns", "Go.")

        return time_call(begin)

    cases: dict[str, Case] = {"a start": start, "a step": lambda: time_call(task.step)}
    first, then = take_turns(cases, rounds=_STARTS, warm_up=2).values()
    figures = {**first.figures(), "over_a_step": ratio(first, then)}
    rows = [
        Row("a step", then.figures(), failure=then.failure),
        Row("a start", figures, (Limit("over_a_step", 1.3),), first.failure),
    ]
    return Table(f"a task of the library, {_STARTS} rounds", rows)


def _sum(context: AgentContext) -> Mapping[str, int]:
    return {"n": sum(len(step.content) for step in context.steps)}


def _reading(bench: Bench, depth: int) -> Table:
    """Compare the step after *depth* others by both functions; the first reading is not counted."""
    thread = bench.thread_at(depth)
    cases = {
        "reads the newest content": function_case(bench.world, thread, take_step),
        "sums the length of all contents": function_case(bench.world, thread, take_step, _sum),
    }
    rounds = bench.scale.depth_rounds
    newest, all_of_them = take_turns(cases, rounds=rounds, warm_up=1).values()
    extra = None
    if newest.failure is None and all_of_them.failure is None:
        extra = (all_of_them.median_ms - newest.median_ms) / depth
    figure = "ms_a_step_of_history"
    rows = [
        Row("reads the newest content", newest.figures(), failure=newest.failure),
        Row(
            "sums the length of all contents",
            {**all_of_them.figures(), figure: extra},
            (Limit(figure, 0.01),),
            all_of_them.failure,
        ),
    ]
    return Table(f"a step by a function at depth {depth:,}, {rounds} rounds", rows)
