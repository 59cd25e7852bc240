"""Describe the machine and the versions of a benchmark run."""

import os
import platform
import shutil
import statistics
import subprocess
import sys
from importlib.metadata import version
from typing import Any

from bench.timing import time_call

import uwf_git

_PACKAGES = ("uwf", "dulwich", "click", "jsonata-python", "jsonschema")
_FSYNCS = 20


def describe_machine(directory: str) -> dict[str, Any]:
    """Return the description of this machine; *directory* is where files are written."""
    return {
        "cpus": f"{os.cpu_count()} of {_cpu_model()}",
        "system": platform.platform(),
        "python": f"{platform.python_version()} ({sys.executable})",
        "git": git_version(),
        "packages": [f"{name} {version(name)}" for name in _PACKAGES],
        "installed": "regularly" if _is_regular() else "editable: start-up is slower by that",
        "load": list(os.getloadavg()),
        "directory": directory,
        "fsync_ms": statistics.median(_fsync_ms(directory) for _ in range(_FSYNCS)),
    }


def find_git() -> str | None:
    """Return the path of git, None if there is none."""
    return shutil.which("git")


def git_version() -> str | None:
    """Return the version of git, None if there is none."""
    git = find_git()
    if git is None:
        return None
    ran = subprocess.run([git, "--version"], capture_output=True, text=True, check=True)
    return ran.stdout.removeprefix("git version ").strip()


def _is_regular() -> bool:
    return "site-packages" in str(uwf_git.__file__)


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("model name")]
    except OSError:
        lines = []
    return lines[0].partition(":")[2].strip() if lines else platform.machine()


def _fsync_ms(directory: str) -> float:
    """Write and force to the disk what a small object is."""
    path = os.path.join(directory, "fsync")
    with open(path, "wb") as file:
        file.write(os.urandom(200))
        file.flush()
        sample = time_call(lambda: os.fsync(file.fileno()))
    os.unlink(path)
    return sample.wall_ms
