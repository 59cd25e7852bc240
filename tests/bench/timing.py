"""Measure how long calls and processes take.

Compared cases take turns, so a noisy moment hits all of them. The time of a turn does not include
its preparation and cleanup.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bench.report import Limit, Row

_MS = 1000
_MIB = 1024 * 1024

_WATCH = """
import os, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=actions)
_pid, status, used = os.wait4(child, 0)
print(used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class CaseFailed(Exception):
    """A case did not do its work, so its time would mean nothing."""


class Sample(NamedTuple):
    """One turn."""

    wall_ms: float
    cpu_ms: float
    """Of the process that was measured and of its children; noise hits it less."""


class Series(NamedTuple):
    """All turns of one case."""

    samples: tuple[Sample, ...]
    failure: str | None = None

    @property
    def median_ms(self) -> float:
        """The middle one of the turns."""
        return statistics.median(sample.wall_ms for sample in self.samples)

    @property
    def total_ms(self) -> float:
        """All turns together."""
        return sum(sample.wall_ms for sample in self.samples)

    def figures(self) -> dict[str, float]:
        """Return the figures for a table; none if it failed."""
        if self.failure is not None:
            return {}
        return {
            "median_ms": self.median_ms,
            "least_ms": min(sample.wall_ms for sample in self.samples),
            "cpu_ms": statistics.median(sample.cpu_ms for sample in self.samples),
        }


Case = Callable[[], Sample]
"""Takes one turn and says how long that was. May raise ``CaseFailed``."""


def take_turns(cases: Mapping[str, Case], *, rounds: int, warm_up: int) -> dict[str, Series]:
    """Measure *cases*, one turn each in every round; the rounds of *warm_up* do not count."""
    samples: dict[str, list[Sample]] = {name: [] for name in cases}
    failures: dict[str, str] = {}
    for turn in range(-warm_up, rounds):
        for name, case in cases.items():
            if name in failures:
                continue
            try:
                sample = case()
            except CaseFailed as failure:
                failures[name] = str(failure)
                continue
            if turn >= 0:
                samples[name].append(sample)
    return {name: Series(tuple(samples[name]), failures.get(name)) for name in cases}


def ratio(series: Series, to: Series) -> float | None:
    """Return its time as a multiple of that of *to*; None if one of them failed."""
    if series.failure is not None or to.failure is not None:
        return None
    return series.median_ms / to.median_ms


def compare_with_first(
    series: Mapping[str, Series], figure: str, limits: Mapping[str, float]
) -> list[Row]:
    """Return a row for each, whose *figure* is its time as a multiple of the first one's."""
    first = next(iter(series.values()))
    return [
        Row(
            name,
            {**each.figures(), figure: ratio(each, first)},
            [Limit(figure, limits[name])] if name in limits else (),
            each.failure,
        )
        for name, each in series.items()
    ]


def time_call(action: Callable[[], object]) -> Sample:
    """Measure one call in this process."""
    cpu_ms = _cpu_ms()
    start = time.perf_counter()
    action()
    wall_ms = (time.perf_counter() - start) * _MS
    return Sample(wall_ms, _cpu_ms() - cpu_ms)


def time_process(argv: tuple[str, ...], environ: Mapping[str, str], *, log: str) -> Sample:
    """Measure one process, from its start to its end; *log* takes its output.

    Raises:
        CaseFailed: it ended with another status than 0.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # No subprocess module: its own work would be in the time of the process.
    start = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, environ, file_actions=actions)
    _pid, status, used = os.wait4(pid, 0)
    wall_ms = (time.perf_counter() - start) * _MS
    if status != 0:
        raise CaseFailed(f"exit status {os.waitstatus_to_exitcode(status)}: {_first_line(log)}")
    return Sample(wall_ms, (used.ru_utime + used.ru_stime) * _MS)


def find_peak_mib(argv: tuple[str, ...], environ: Mapping[str, str], *, log: str) -> float:
    """Return the peak memory of a process; *log* takes its output.

    A small process starts it: Linux counts as a program's own what its starter had before.

    Raises:
        CaseFailed: it ended with another status than 0.
    """
    watched = (sys.executable, "-S", "-E", "-c", _WATCH, log, *argv)
    ran = subprocess.run(watched, env=dict(environ), capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise CaseFailed(f"exit status {ran.returncode}: {_first_line(log)}")
    # Linux counts in units of 1024 bytes, macOS in bytes.
    return int(ran.stdout) * (1 if sys.platform == "darwin" else 1024) / _MIB


def _cpu_ms() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(each.ru_utime + each.ru_stime for each in used) * _MS


def _first_line(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.readline().strip()[:200]
