"""Threads with many steps that several parts of the benchmark share, built once; and the scale."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.machine import find_git
from bench.world import Thread, World, begin_endless, make_store, reopen_store

from uwf_git.store.git.config import set_config


class Scale(NamedTuple):
    """The scale of a run."""

    rounds: int
    """Of cold processes."""

    warm_up: int
    rate_steps: int
    depths: tuple[int, ...]
    """Where steps are timed."""

    depth_rounds: int
    large: tuple[int, ...]
    """Of these depths, those where bytes are counted and whole threads are read."""

    read_rounds: int
    crowd: int
    """Number of archived threads."""

    drivers: int
    """Number of threads in the background."""

    branches: int
    """Number of branches that are checked."""

    page: int
    """Number of threads that a page lists."""

    fleet: int = 6
    """Number of threads that two machines share."""

    agent_s: float = 2
    """How long the agents of a fleet work."""

    ttl_s: float = 6
    """How long a machine is silent before another takes over."""


FULL = Scale(
    rounds=20,
    warm_up=2,
    rate_steps=300,
    depths=(10, 100, 1_000, 10_000),
    depth_rounds=15,
    large=(1_000, 10_000),
    read_rounds=3,
    crowd=100_000,
    drivers=200,
    branches=1_000,
    page=1_000,
)
QUICK = Scale(
    rounds=5,
    warm_up=1,
    rate_steps=40,
    depths=(10, 100, 500),
    depth_rounds=5,
    large=(500,),
    read_rounds=1,
    crowd=5_000,
    drivers=10,
    branches=50,
    page=100,
)


@dataclass(slots=True)
class Bench:
    """A run: its world, its scale, and the deep threads that it has built so far."""

    world: World
    scale: Scale
    _threads: dict[int, Thread] = field(default_factory=dict)
    _packed: dict[int, Thread] = field(default_factory=dict)

    def tell(self, what: str) -> None:
        """Print the progress."""
        sys.stderr.write(f"[{what}]\n")

    def thread_at(self, depth: int) -> Thread:
        """Return a thread of so many steps, alone in a store that does not fsync."""
        if depth not in self._threads:
            self.tell(f"a thread of {depth:,} steps")
            thread = begin_endless(
                self.world, make_store(self.world, f"depth-{depth}", fsync=False)
            )
            # Packing would go on in the background when all is measured.
            set_config(os.path.join(thread.store.path, "config"), "gc.auto", "0")
            for _ in range(depth):
                thread.step()
            self._threads[depth] = thread
        return self._threads[depth]

    def packed_thread_at(self, depth: int) -> Thread | None:
        """Return the same thread in a copy of its store after `git gc`; None without git."""
        git = find_git()
        if git is None:
            return None
        if depth not in self._packed:
            thread = self.thread_at(depth)
            self.tell(f"git gc of {depth:,} steps")
            path = self.world.path(f"packed-{depth}.git")
            _copy_store(thread.store.path, path)
            command = [git, "gc", "--quiet", "--prune=now"]
            subprocess.run(command, cwd=path, env=dict(self.world.environ), check=True)
            packed = thread._replace(store=reopen_store(self.world, path, fsync=False))
            with packed.kept_in_place():
                # Trust belongs to the path of a store.
                packed.step(trust=True)
            self._packed[depth] = packed
        return self._packed[depth]

    def durable(self, thread: Thread) -> Thread:
        """Return the same thread in the same store, from now on with fsync (the default)."""
        return thread._replace(store=reopen_store(self.world, thread.store.path, fsync=True))


def _copy_store(path: str, to: str) -> None:
    shutil.copytree(os.path.join(path, "objects"), os.path.join(to, "objects"), copy_function=_link)
    shutil.copytree(path, to, dirs_exist_ok=True, ignore=shutil.ignore_patterns("objects"))


def _link(path: str, to: str) -> None:
    """Link an object, for none is ever written twice, and 10,000 steps are 100,000 files."""
    try:
        os.link(path, to)
    except OSError:
        shutil.copyfile(path, to)
