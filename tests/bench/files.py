"""Benchmark of recording a project's files: steps with it beside steps without, and the disk."""

import os
import shutil
import subprocess
from collections.abc import Mapping

from bench.cold import step_process
from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.timing import Series, ratio, take_turns
from bench.world import Thread, World, begin_endless, make_store

_FILES = 2_000
_STEP = (Limit("over_none", 1.7), Limit("over_none_10_s", 1.02))
_DISK = (Limit("kib_a_step", 20), Limit("kib_packed", 3))
_KINDS = ("nothing changed", "one file changed")
# One edit is in the middle of a file, so that a delta has something to copy.
_AGENT = """\
#!/bin/sh
cat > /dev/null
{edit}
echo '{{"meta": {{"n": 1}}}}'
"""
_EDIT = 'echo "line $(od -An -N8 -tx8 /dev/urandom)" >> folder-3/file-3.py'
_AGENT_S = 10


def measure_files(bench: Bench) -> list[Table]:
    """Compare steps in a project of 2,000 files with recording and without."""
    rounds = bench.scale.depth_rounds
    project = _make_project(bench.world)
    # Two threads in one project would record each other's edits.
    other = shutil.copytree(project, project + "-without")
    cases = {}
    for kind in _KINDS:
        for recorded in (True, False):
            environ = None if recorded else bench.world.configured("recordFiles=false")
            thread = _begin(bench.world, project if recorded else other, kind, is_recorded=recorded)
            cases[kind, recorded] = step_process(bench.world, thread, environ)
    before = _count_kib(project)
    series = take_turns({f"{each}": case for each, case in cases.items()}, rounds=rounds, warm_up=1)
    rows = [_row(kind, series) for kind in _KINDS]
    kib = (_count_kib(project) - before) / (rounds + 1)
    subprocess.run(["git", "gc", "--quiet"], cwd=project, env=bench.world.environ, check=True)
    packed = (_count_kib(project) - before) / (rounds + 1)
    disk = Row("disk, one file changed", {"kib_a_step": kib, "kib_packed": packed}, _DISK)
    return [Table(f"files of {_FILES:,} in a project, {rounds} rounds", [*rows, disk])]


def _make_project(world: World) -> str:
    project = world.path("project")
    for number in range(_FILES):
        folder = os.path.join(project, f"folder-{number % 40}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file-{number}.py"), "w", encoding="utf-8") as file:
            file.writelines(f"# {number}: line {line}\n" for line in range(60))
    for words in (("init",), ("add", "."), ("commit", "-m", "Begin"), ("gc",)):
        named = ("-c", "user.name=bench", "-c", "user.email=bench@bench")
        git = ["git", *named, *words, "--quiet"] if words != ("add", ".") else ["git", *words]
        subprocess.run(git, cwd=project, env=world.environ, check=True)
    return project


def _begin(world: World, project: str, kind: str, *, is_recorded: bool) -> Thread:
    name = f"files-{_KINDS.index(kind)}-{is_recorded}"
    agent = world.write(name, _AGENT.format(edit=_EDIT if kind == _KINDS[1] else ":"))
    return begin_endless(world, make_store(world, name, fsync=False), agent=agent, cwd=project)


def _row(kind: str, series: Mapping[str, Series]) -> Row:
    own, none = series[f"{(kind, True)}"], series[f"{(kind, False)}"]
    figures: dict[str, float | None] = dict(own.figures())
    if figures and none.figures():
        figures["over_none"] = ratio(own, none)
        more_s = (own.median_ms - none.median_ms) / 1_000
        figures["over_none_10_s"] = 1 + more_s / _AGENT_S
    return Row(f"a step, {kind}", figures, _STEP, own.failure or none.failure)


def _count_kib(project: str) -> float:
    told = subprocess.run(
        ["git", "count-objects", "-v"], cwd=project, capture_output=True, text=True, check=True
    )
    found = dict(line.split(": ") for line in told.stdout.splitlines())
    return float(found["size"]) + float(found["size-pack"])
