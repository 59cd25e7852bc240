"""Benchmark of the disk use of a step: bytes of git objects, before and after `uwf gc`, and limits.

Directories are not counted: they do not grow with the steps.
"""

import os
import random
import string
import subprocess
import time

from bench.deep import Bench
from bench.machine import find_git
from bench.report import Limit, Row, Table
from bench.world import begin_endless, make_store

from uwf_git.agents.command_line import AgentReply
from uwf_git.commands.admin import gc_store
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.store.store import open_store

_BLOCK_BYTES = 512
_OUTPUT_BYTES = 1024
_VOCABULARY = 3000
_MOST_COLLECTED_BYTES = 2048
_MOST_WRITTEN_BYTES = 5 * 1024


def measure_size(bench: Bench) -> list[Table]:
    """Count the bytes a step of small output takes, as written and packed."""
    rows = []
    for depth in bench.scale.large:
        rows.append(_written(bench, depth))
        rows.append(_packed(bench, depth))
    depth = max(bench.scale.large)
    return [
        Table("bytes on disk per step of 75 bytes of output", rows),
        Table(f"after `uwf gc`: {depth:,} steps of 1 KB of output", [_collected(bench, depth)]),
    ]


def _written(bench: Bench, depth: int) -> Row:
    """Count what steps wrote and united, before git packs it."""
    found = _files(os.path.join(bench.thread_at(depth).store.path, "objects"))
    figures = {**_bytes_a_step(found, depth), "files": len(found)}
    limits = [Limit("allocated_bytes", _MOST_WRITTEN_BYTES)]
    return Row(f"depth {depth:,}, as written", figures, limits)


def _packed(bench: Bench, depth: int) -> Row:
    name = f"depth {depth:,}, after git gc"
    thread = bench.packed_thread_at(depth)
    if thread is None:
        return Row(name, {}, failure="there is no git")
    return Row(name, _bytes_a_step(_files(os.path.join(thread.store.path, "objects")), depth))


def _bytes_a_step(found: list[os.stat_result], depth: int) -> dict[str, float]:
    return {
        "bytes": sum(each.st_size for each in found) / depth,
        "allocated_bytes": sum(each.st_blocks for each in found) * _BLOCK_BYTES / depth,
    }


def _collected(bench: Bench, depth: int) -> Row:
    """Count what a step takes after `uwf gc`, and try git on the result."""
    name = "packed by git"
    git = find_git()
    if git is None:
        return Row(name, {}, failure="there is no git")
    path = _wordy_store(bench, depth)
    environ = dict(bench.world.environ)
    store = open_store(path, environ=environ)
    began = time.perf_counter()
    collected = gc_store(store, environ)
    seconds = time.perf_counter() - began
    figures: dict[str, float | None] = {
        "bytes": collected.after.size_bytes / depth,
        "bytes_before": collected.before.size_bytes / depth,
        "gc_s": seconds,
    }
    clone = bench.world.path("clone.git")
    commands = {
        "fsck_s": ["fsck", "--strict", "--no-dangling", "--no-progress"],
        "log_s": ["log", "--all", "--format=%H %s"],
        "clone_s": ["clone", "--quiet", "--mirror", f"file://{path}", clone],
    }
    environ = dict(bench.world.environ)
    for figure, words in commands.items():
        began = time.perf_counter()
        subprocess.run([git, *words], cwd=path, env=environ, check=True, capture_output=True)
        figures[figure] = time.perf_counter() - began
    return Row(name, figures, [Limit("bytes", _MOST_COLLECTED_BYTES)])


def _wordy_store(bench: Bench, depth: int) -> str:
    """Return a store with a thread whose steps say 1 KB each, in random words.

    Random words compress worse than real text.
    """
    path = bench.world.path("wordy.git")
    if os.path.exists(path):
        return path
    bench.tell(f"a thread of {depth:,} steps of 1 KB")
    chance = random.Random(0)
    words = [
        "".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 9)))
        for _word in range(_VOCABULARY)
    ]

    def play(turn: Turn) -> Played:
        text = " ".join(chance.choices(words, k=_OUTPUT_BYTES // 3))[:_OUTPUT_BYTES]
        reply = AgentReply(meta={"n": chance.randrange(2**30)}, content=text, form="object")
        return Played(reply, turn.snapshot.commit.time_s * 1000, 1)

    thread = begin_endless(bench.world, make_store(bench.world, "wordy", fsync=False))
    for _step in range(depth):
        step_thread(thread.store, thread.caller, StepRequest(thread.id, play))
        thread.unite()
    return path


def count_bytes(folder: str) -> int:
    """Return the bytes of all files below *folder*."""
    return sum(each.st_size for each in _files(folder))


def _files(folder: str) -> list[os.stat_result]:
    return [
        os.stat(os.path.join(directory, file))
        for directory, _, files in os.walk(folder)
        for file in files
    ]
