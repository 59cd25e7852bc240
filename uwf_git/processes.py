"""Processes as /proc shows them. Source: proc(5), /proc/<pid>/stat."""

import os
from typing import NamedTuple

_ENDED = ("Z", "X", "x")
_STOPPED = ("T", "t")


class Process(NamedTuple):
    pid: int
    parent: int
    group: int
    start: int
    """Clock ticks from boot to its start; with the pid, it names one process for ever."""

    has_ended: bool
    """It is dead or a zombie: it runs no more and holds no lock."""

    is_stopped: bool
    """It was stopped (SIGSTOP, Ctrl-Z): it keeps its locks, and SIGTERM does not reach it."""


def read_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return None
    # Field 2 is the program's name in parentheses, which may hold blanks and parentheses.
    fields = stat.rpartition(")")[2].split()
    parent, group, start = int(fields[1]), int(fields[2]), int(fields[19])
    return Process(pid, parent, group, start, fields[0] in _ENDED, fields[0] in _STOPPED)


def read_name(pid: int) -> str:
    """Return the name of the program of *pid*, of 15 characters at most; "?" if it has gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return "?"


def read_environ(pid: int) -> dict[str, str]:
    """Return the environment that *pid* began with; empty if it has gone or is another user's."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            entries = (entry.partition("=") for entry in file.read().split("\0"))
    except OSError:
        return {}
    return {name: value for name, _, value in entries}


def read_process_start(pid: int) -> int | None:
    """Return the start of the process *pid* in clock ticks since boot.

    None if there is no such process, it is a zombie, or there is no /proc.
    """
    process = read_process(pid)
    return None if process is None or process.has_ended else process.start


def list_processes() -> list[Process] | None:
    try:
        names = os.listdir("/proc")
    except FileNotFoundError:
        return None
    found = [read_process(int(name)) for name in names if name.isdecimal()]
    # Some may have ended meanwhile; our own is missing only where /proc has another format.
    return [process for process in found if process is not None] or None


def find_boot_time_s() -> int | None:
    """Return when the machine booted, in seconds since 1970; None if there is no /proc."""
    try:
        with open("/proc/stat", "rb") as file:
            return next((int(line.split()[1]) for line in file if line.startswith(b"btime ")), None)
    except OSError:
        return None
