"""Benchmark of many machines: a driver with two workers beside the ideal, hooks, and a takeover."""

import os
import signal
import time
from pathlib import Path

from bench.deep import Bench
from bench.report import Limit, Row, Table
from commands.fleet.machines import PLAIN, Field, Machine

_STEPS = 3
_WORKERS = 2


def measure_fleet(bench: Bench) -> list[Table]:
    """Measure whole runs of `uwf drive` and `uwf work`, in processes."""
    field = Field(Path(bench.world.path("fleet")), bench.world.environ)
    field.place.mkdir()
    a = field.machine("a")
    threads, long_s, short_s = bench.scale.fleet, bench.scale.agent_s, bench.scale.agent_s / 4
    rows = [_row(a, agent_s=long_s, threads=threads, limit=1.2)]
    hooked = _row(a, agent_s=short_s, threads=threads, limit=None)
    for hook in ("pre-receive", "post-receive"):
        (field.hub / "hooks" / hook).unlink()
    plain = _row(a, agent_s=short_s, threads=threads, limit=None)
    over = {"over_plain": (hooked.figures["s"] or 0) / (plain.figures["s"] or 1)}
    rows += [
        hooked._replace(name=f"{hooked.name}, hub with hooks", figures={**hooked.figures, **over}),
        plain._replace(name=f"{plain.name}, plain hub"),
    ]
    rows[1] = rows[1]._replace(limits=(Limit("over_plain", 1.5),))
    return [
        Table(f"a driver with {_WORKERS} processes, {threads} threads of {_STEPS} steps", rows),
        Table("a killed machine", [_take_over(field, a, ttl_s=bench.scale.ttl_s)]),
    ]


def _row(a: Machine, *, agent_s: float, threads: int, limit: float | None) -> Row:
    a.field.let(f"sleep {agent_s}")
    for _ in range(threads):
        a.begin(PLAIN)
    begun = time.monotonic()
    a.run("drive", "--on", f"local:{_WORKERS}", "--poll", "0.5")
    took_s = time.monotonic() - begun
    ideal_s = threads * _STEPS * agent_s / _WORKERS
    limits = () if limit is None else (Limit("over_ideal", limit),)
    return Row(f"agents of {agent_s:g} s", {"s": took_s, "over_ideal": took_s / ideal_s}, limits)


def _take_over(field: Field, a: Machine, *, ttl_s: float) -> Row:
    """Measure from the end of a machine to the agent on another one."""
    field.let("sleep 600")
    thread = a.begin(PLAIN)
    before = field.paid()
    options = ("--hub", str(field.hub), "--trust", "--ttl", str(ttl_s), "--poll", "0.5")
    first = field.machine("b").start("work", thread, *options)
    field.wait_paid(before + 1)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    field.let("true")
    killed = time.monotonic()
    second = field.machine("c").start("work", thread, *options)
    field.wait_paid(before + 2)
    took_s = time.monotonic() - killed
    second.communicate()
    return Row("takeover", {"s": took_s, "over_ttl": took_s / ttl_s}, (Limit("over_ttl", 1.5),))
