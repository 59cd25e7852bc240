"""Benchmark of a step at different depths, and the project's limit.

The thread is put back after each turn, so each turn starts at the same depth; threads of different
depth take turns.
"""

import sys
from collections.abc import Callable, Mapping

from bench.cold import step_process
from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.timing import (
    Case,
    Sample,
    compare_with_first,
    find_peak_mib,
    take_turns,
    time_call,
    time_process,
)
from bench.world import Thread, World

from uwf_git import AgentContext, TaskHandle, TaskRuntime
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.remote.push import push_remote
from uwf_git.store.remotes.remotes import add_remote, choose_remote, track
from uwf_git.store.store import create_store, open_store
from uwf_git.store.threads.heads import get_head

_STEPS_A_ROUND = 4
"""In one process, where a step is quick, and noise is large beside it."""

_LIMIT = Limit("over_the_first", 1.15)

_PROMPTS = "prompts, which show at most 51 steps"

_RESUME = """\
import sys
from uwf_git import TaskRuntime

def play(context):
    return {"n": len(context.steps[-1].content)}

TaskRuntime(sys.argv[1], players={"player": play}).task(sys.argv[2]).step(agent="python:player")
"""

_KIT = """\
import os, sys
from uwf_git.agentkit import build_prompt, load_context

build_prompt(load_context(os.environ, sys.argv[1:]))
"""


def measure_depth(bench: Bench) -> list[Table]:
    """Compare steps at several depths: in one process, with and without fsync, and cold."""
    scale = bench.scale
    threads = {_name(depth): bench.thread_at(depth) for depth in scale.depths}
    packed = bench.packed_thread_at(scale.large[0])
    if packed is not None:
        threads[f"depth {scale.large[0]:,}, after git gc"] = packed
    rounds = scale.depth_rounds
    steps = rounds * _STEPS_A_ROUND
    fast = compare_depths("steps in one process, uwf.fsync=false", _cases(threads), rounds=steps)
    pushes = {name: _push_case(bench.world, thread) for name, thread in threads.items()}
    pushed = compare_depths("pushes of a step to a bare repository", pushes, rounds=rounds)
    # From here on with fsync, as it is by default; it is a setting of the store.
    threads = {name: bench.durable(thread) for name, thread in threads.items()}
    durable = compare_depths("steps in one process", _cases(threads), rounds=steps)
    return [fast, pushed, durable, *_in_one_process(bench, threads), *_cold(bench, threads)]


def _name(depth: int) -> str:
    return f"depth {depth:,}"


def _in_one_process(bench: Bench, threads: Mapping[str, Thread]) -> list[Table]:
    """Compare what an agent reads, and steps by the library's functions."""
    world, rounds = bench.world, bench.scale.depth_rounds * _STEPS_A_ROUND
    measured: dict[str, Callable[[Thread], Case]] = {
        "steps by a function": lambda thread: function_case(world, thread, take_step),
        "runs of ten steps by a function": lambda thread: function_case(world, thread, _run),
        "contexts and the newest step": lambda thread: (
            lambda: time_call(lambda: get_context(thread.store, thread.id)["steps"][-1])
        ),
        _PROMPTS: lambda thread: (
            lambda: time_call(lambda: render_prompt(get_context(thread.store, thread.id)))
        ),
    }
    return [
        compare_depths(
            title,
            {
                name: make(each)
                for name, each in threads.items()
                # A thread of ten steps has less to show.
                if title != _PROMPTS or name != _name(10)
            },
            rounds=rounds,
        )
        for title, make in measured.items()
    ]


def take_step(task: TaskHandle) -> None:
    """Take a step by the function."""
    task.step(agent="python:player")


def _run(task: TaskHandle) -> None:
    task.run(agent="python:player", max_steps=10)


def read_newest(context: AgentContext) -> Mapping[str, int]:
    """Play a turn: look at the newest step."""
    return {"n": len(context.steps[-1].content)}


def function_case(
    world: World,
    thread: Thread,
    act: Callable[[TaskHandle], object],
    play: Callable[[AgentContext], Mapping[str, int]] = read_newest,
) -> Case:
    """Return the case of *act*, by which the function *play* takes turns."""
    runtime = TaskRuntime(thread.store.path, players={"player": play}, environ=world.environ)
    task = runtime.task(thread.id)
    return thread.in_place(lambda: time_call(lambda: act(task)))


def _cold(bench: Bench, threads: Mapping[str, Thread]) -> list[Table]:
    """Compare whole processes at the first and the last depth."""
    world, rounds = bench.world, bench.scale.depth_rounds
    ends = {
        name: threads[name]
        for name in (_name(min(bench.scale.depths)), _name(max(bench.scale.depths)))
    }
    measured: dict[str, Callable[[Thread], Case]] = {
        "cold `uwf thread step`": lambda thread: step_process(world, thread),
        "a step by a function in a new process": lambda thread: _script(world, thread, _RESUME),
        "the kit's context and prompt in a new process": lambda thread: _script(
            world, thread, _KIT
        ),
    }
    tables = [
        compare_depths(title, {name: make(each) for name, each in ends.items()}, rounds=rounds)
        for title, make in measured.items()
    ]
    memory = {name: _peak_mib(world, thread) for name, thread in ends.items()}
    first = next(iter(memory.values()))
    rows = [
        Row(name, {"peak_mib": peak, "over_the_first": peak / first}, (_LIMIT,))
        for name, peak in memory.items()
    ]
    return [*tables, Table("memory of a step by a function in a new process", rows)]


def _script(world: World, thread: Thread, script: str) -> Case:
    argv = (sys.executable, "-c", script, *_place(thread, script))
    environ = {**world.environ, "UWF_REPO": thread.store.path}
    return thread.in_place(lambda: time_process(argv, environ, log=world.path("log")))


def _place(thread: Thread, script: str) -> tuple[str, ...]:
    return (thread.id,) if script is _KIT else (thread.store.path, thread.id)


def _peak_mib(world: World, thread: Thread) -> float:
    argv = (sys.executable, "-c", _RESUME, *_place(thread, _RESUME))
    with thread.kept_in_place():
        return find_peak_mib(argv, world.environ, log=world.path("log"))


def step_case(thread: Thread) -> Case:
    """Return the case of one step in this process; the thread is put back after each turn."""
    return thread.in_place(lambda: time_call(thread.step))


def _push_case(world: World, thread: Thread) -> Case:
    """Return the case of a push of one step to a hub, where each turn finds the same."""
    path = f"{thread.store.path}.hub"
    hub = thread._replace(store=create_store(path, environ=world.environ))
    add_remote(thread.store, "hub", path, cwd=world.root)
    store = open_store(thread.store.path, environ=world.environ)

    def push() -> None:
        if failure := push_remote(store, thread.caller, "hub", [thread.id]).failure():
            raise failure

    def case() -> Sample:
        before = get_head(store, thread.id).commit
        with thread.kept_in_place(), hub.kept_in_place():
            thread.step()
            after = get_head(store, thread.id).commit
            sample = time_call(push)
        track(store, choose_remote(store.config, "hub"), {f"threads/{thread.id}": (after, before)})
        return sample

    push()
    return case


def _cases(threads: Mapping[str, Thread]) -> dict[str, Case]:
    return {name: step_case(thread) for name, thread in threads.items()}


def compare_depths(title: str, cases: Mapping[str, Case], *, rounds: int) -> Table:
    """Let *cases* take turns; each but the first is held to the first."""
    series = take_turns(cases, rounds=rounds, warm_up=2)
    rows = compare_with_first(series, _LIMIT.figure, dict.fromkeys([*series][1:], _LIMIT.most))
    return Table(f"{title}, {rounds} rounds", rows)
