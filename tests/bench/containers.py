"""Benchmark of containers: steps, splits and joins of flows, their check, and the project's limits.

Branches are compared with as many threads that do the same work alone.
"""

import json
import os
import random
import subprocess
from collections.abc import Callable, Mapping
from functools import partial

from bench.deep import Bench
from bench.depth import compare_depths, step_case
from bench.machine import find_git
from bench.report import Row, Table
from bench.size import count_bytes
from bench.timing import Case, compare_with_first, take_turns, time_call
from bench.world import Thread, World, begin_thread, make_store, play_once

from uwf_git.agents.command_line import AgentReply
from uwf_git.commands.receive import check_received
from uwf_git.commands.remote.push_plan import with_branches
from uwf_git.commands.step.step_thread import StepRequest, join_branches, list_leaves, step_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.verify import verify
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ARCHIVE, get_head

_AGENT: dict[str, object] = {"type": "agent", "agentId": "worker"}
_MANY, _FEW = 32, 3
_STATE_BYTES = 20 * 1024
_STEPS_WITH_STATE = 200
_MOST_OVER_THREADS = 1.5
_MOST_OVER_ONE = 3


def measure_containers(bench: Bench) -> list[Table]:
    """Compare steps, splits and joins at several depths, and branches with threads."""
    return [*_at_depths(bench), _agents(bench), _checks(bench), _hub(bench), _disk(bench)]


def _at_depths(bench: Bench) -> list[Table]:
    """Time the last pass of a loop, the split that follows, and its join."""
    scale, world = bench.scale, bench.world
    rounds = scale.depth_rounds * 2
    threads: dict[str, Thread] = {}
    for depth in scale.depths:
        bench.tell(f"a flow of {depth:,} steps")
        parts = [_loop(depth + 1, [_AGENT]), _parallel(_FEW)]
        threads[f"depth {depth:,}"] = thread = _begin(world, f"flow-{depth}", parts)
        for _ in range(depth):
            thread.step()
    # From here on with fsync, as it is by default.
    threads = {name: bench.durable(thread) for name, thread in threads.items()}
    tables = [_compare("a step of a flow", threads, step_case, rounds)]
    for thread in threads.values():
        thread.step()
    tables.append(_compare(f"a split into {_FEW}", threads, step_case, rounds))
    for thread in threads.values():
        thread.step()
        for branch in list(list_leaves(thread.store, thread.snapshot())):
            _run(thread._replace(id=branch))
    tables.append(_compare(f"a join of {_FEW}", threads, _join_case, rounds))
    return tables


def _compare(
    title: str, threads: Mapping[str, Thread], make: Callable[[Thread], Case], rounds: int
) -> Table:
    cases = {name: make(thread) for name, thread in threads.items()}
    return compare_depths(f"{title}, in one process", cases, rounds=rounds)


def _join_case(thread: Thread) -> Case:
    join = partial(join_branches, thread.store, thread.caller, thread.id)
    return thread.in_place(lambda: time_call(join))


def _agents(bench: Bench) -> Table:
    """Compare what an agent's step costs in a thread of its own and in a branch."""
    world, items = bench.world, min(100, bench.scale.branches)
    passes = _MANY // _FEW
    store = _store(world, "agents")
    alone = f"{_MANY} threads of one step"
    _put(world, store, "alone", [_AGENT])
    flows = {
        f"a parallel of {_MANY} branches": (_MANY, [_parallel(_MANY)]),
        f"a loop of {_FEW} branches, {passes} passes": (
            _FEW * passes,
            [_loop(passes, [_parallel(_FEW)])],
        ),
        f"a map over {items} items": (items, [_map(items)]),
    }
    counts = {alone: _MANY} | {name: count for name, (count, _) in flows.items()}
    cases: dict[str, Case] = {alone: _run_case(world, store, "alone", times=_MANY)}
    for number, (name, (_, parts)) in enumerate(flows.items()):
        _put(world, store, f"flow-{number}", parts)
        cases[name] = _run_case(world, store, f"flow-{number}", times=1)
    series = take_turns(cases, rounds=bench.scale.read_rounds * 3, warm_up=1)
    each = {name: series[name].median_ms / counts[name] for name in cases}
    rows = [
        Row(
            name,
            {
                "ms_a_step": each[name],
                "steps_a_second": 1000 / each[name],
                "over_threads": each[name] / each[alone],
            },
        )
        for name in cases
    ]
    return Table("agents of branches, with all that begins, ends and joins these", rows)


def _run_case(world: World, store: Store, workflow: str, *, times: int) -> Case:
    def work() -> None:
        for _ in range(times):
            _run(begin_thread(world, store, workflow))

    return lambda: time_call(work)


def _run(thread: Thread) -> None:
    """Step a thread to its end, one agent after the other."""
    request = StepRequest(thread.id, play_once, jobs=1)
    while step_thread(thread.store, thread.caller, request).status != "completed":
        thread.unite()


def _checks(bench: Bench) -> Table:
    """Compare `uwf verify` of many branches, joined, with that of as many threads."""
    count = bench.scale.branches
    bench.tell(f"{count:,} branches")
    alone = _store(bench.world, "check-threads")
    _put(bench.world, alone, "alone", [_AGENT])
    for _ in range(count):
        _run(begin_thread(bench.world, alone, "alone"))
    joined = _begin(bench.world, "check-branches", [_map(count)])
    _run(joined)
    branches = f"{count:,} joined branches"
    names = {f"{count:,} threads of one step": alone, branches: joined.store}
    cases: dict[str, Case] = {
        name: partial(time_call, partial(verify, store, [])) for name, store in names.items()
    }
    series = take_turns(cases, rounds=bench.scale.read_rounds, warm_up=1)
    rows = [
        row._replace(figures={**row.figures, "ms_a_thread": series[row.name].median_ms / count})
        for row in compare_with_first(series, "over_threads", {branches: _MOST_OVER_THREADS})
    ]
    return Table("`uwf verify`, in one process", rows)


def _hub(bench: Bench) -> Table:
    """Compare what a hub checks of a push of branches with one thread of the same steps."""
    world = bench.world
    hub = _store(world, "hub")
    one = _begin(world, "push-one", [_loop(_MANY, [_AGENT])])
    many = _begin(world, "push-many", [_parallel(_MANY)])
    branches = f"{_MANY} branches"
    cases: dict[str, Case] = {}
    for name, thread in (("one thread", one), (branches, many)):
        _run(thread)
        ids = with_branches(thread.store, [thread.id])
        tips = {ARCHIVE + each: get_head(thread.store, each).commit for each in ids}
        updates = [RefUpdate(ref, None, tip) for ref, tip in tips.items()]
        # As in a quarantine: the objects are there, and no ref of the hub leads to them.
        seen = hub._replace(objects=thread.store.objects)
        cases[name] = partial(time_call, partial(check_received, seen, updates))
    series = take_turns(cases, rounds=bench.scale.read_rounds * 3, warm_up=1)
    rows = compare_with_first(series, "over_one", {branches: _MOST_OVER_ONE})
    return Table(f"what a hub checks of {_MANY} steps, in one process", rows)


def _disk(bench: Bench) -> Table:
    """Count the bytes of a step of a flow that has 20 KB in its state."""
    rows: list[Row] = []
    for name, size in (("nothing in the state", 0), ("20 KB in the state", _STATE_BYTES)):
        steps = _STEPS_WITH_STATE
        parts = [_loop(steps, [_AGENT])]
        thread = _begin(bench.world, f"state-{size}", parts, state={"text": _text(size)})
        objects = os.path.join(thread.store.path, "objects")
        before = count_bytes(objects)
        for number in range(steps):
            request = StepRequest(thread.id, partial(_play_number, number))
            step_thread(thread.store, thread.caller, request)
            thread.unite()
        figures: dict[str, float | None] = {"bytes": (count_bytes(objects) - before) / steps}
        git = find_git()
        if git is not None:
            command = [git, "gc", "--quiet", "--prune=now"]
            environ = dict(bench.world.environ)
            subprocess.run(command, cwd=thread.store.path, env=environ, check=True)
            figures["bytes_after_gc"] = count_bytes(objects) / steps
        rows.append(Row(name, figures))
    return Table(f"bytes on disk per step of a flow, {_STEPS_WITH_STATE} steps", rows)


def _play_number(number: int, turn: Turn) -> Played:
    reply = AgentReply(meta={"n": number}, content=f"Step {number}.\n", form="object")
    return Played(reply, turn.snapshot.commit.time_s * 1000, 1)


def _text(size: int) -> str:
    """Return a text that packs as badly as words do."""
    chance = random.Random(0)
    return " ".join(f"{chance.randrange(2**32):x}" for _ in range(size // 9))


def _loop(passes: int, nodes: list[dict[str, object]]) -> dict[str, object]:
    return {"type": "loop", "maxIterations": passes, "nodes": nodes}


def _parallel(branches: int) -> dict[str, object]:
    nodes = [{**_AGENT, "output": f"said{number}"} for number in range(branches)]
    return {"type": "parallel", "merge": "last", "nodes": nodes}


def _map(items: int) -> dict[str, object]:
    return {"type": "map", "over": json.dumps(list(range(items))), "nodes": [_AGENT]}


def _store(world: World, name: str) -> Store:
    return make_store(world, f"containers-{name}", fsync=False)


def _put(
    world: World,
    store: Store,
    name: str,
    parts: list[dict[str, object]],
    *,
    state: Mapping[str, object] | None = None,
) -> None:
    root = {"type": "sequential", "nodes": parts}
    document = {"name": name, "description": "A flow.", "initialState": state or {}, "root": root}
    put_workflow(store, world.caller, json.dumps(document).encode())


def _begin(
    world: World,
    name: str,
    parts: list[dict[str, object]],
    *,
    state: Mapping[str, object] | None = None,
) -> Thread:
    """Start a thread of a flow, alone in a store that does not fsync."""
    store = _store(world, name)
    _put(world, store, name, parts, state=state)
    return begin_thread(world, store, name)
