"""The files of a run, by which it outlives the engine that started it, and stopping it."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Literal

from uwf_git.agents.command_line import DEFAULT_MAX_LOG_BYTES, AgentRun
from uwf_git.agents.files import OutputFile, Outputs, create_output, open_left_file, read_left_file
from uwf_git.agents.group import TEAR_DOWN_S, ask_group, has_ended, kill_group, list_members
from uwf_git.errors import Refused
from uwf_git.surroundings import list_processes

# Run files: pid, stdout, stderr and exit, by which a run outlives the engine that started it.
#
# Files, not pipes: the agent does not notice the death of its engine, and a daemon that keeps its
# stdout open does not delay a step. The next engine reads from them whether the agent began,
# runs, ended or was lost.
#
# A full disk costs no finished answer: room for it, and for the status, is reserved before the
# agent starts. The shell writes the status into that room first, then to ``exit``.

PID = "pid"
EXIT = "exit"
RESERVED_EXIT = "exit.reserved"
STDOUT = "stdout"
STDERR = "stderr"

# The newline tells a status that was written whole from a file that was only just created.
_STATUS = re.compile(rb"([0-9]{1,3})\n")

_LONGEST_NUMBER = 32

# A longer answer needs a disk with room. A single byte reserves a whole block.
_RESERVED_BYTES = {RESERVED_EXIT: 1, STDOUT: 256 * 1024, STDERR: 64 * 1024}


class RunDirUnusable(Refused):
    code = "spool-failed"

    def __init__(self, run_dir: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"the run directory {run_dir} cannot be used: {problem}",
            hint=hint or "check its permissions, and whether the disk is full",
            run_dir=run_dir,
            problem=problem,
        )


RunState = Literal["finished", "alive", "lost", "not-started"]
"""``finished``: its exit status is known; ``lost``: it began and is gone without one."""


def read_run_state(run_dir: str, *, alive_is_held: bool) -> RunState:
    """Return the state of the run in *run_dir*; the caller holds the thread's lock.

    The exit status counts before the lock: a daemon that the agent left behind may hold the
    lock for days.
    """
    _, exit_code = _find_exit(Path(run_dir))
    if exit_code is not None:
        return "finished"
    if alive_is_held:
        return "alive"
    return "not-started" if find_run_start_ms(run_dir) is None else "lost"


def read_run_result(
    run_dir: str, *, max_output_bytes: int, max_log_bytes: int = DEFAULT_MAX_LOG_BYTES
) -> AgentRun:
    """Return what a run left in *run_dir*, also if another engine started it."""
    place = Path(run_dir)
    last, exit_code = _find_exit(place)
    try:
        begun_ns = (place / PID).stat().st_mtime_ns
        ended_ns = max(begun_ns, (place / last).stat().st_mtime_ns)
        stdout = read_left_file(str(place / STDOUT), most_bytes=max_output_bytes + 1).content
        with closing(open_left_file(str(place / STDERR))) as log:
            stderr = log.read_tail(max_log_bytes)
    except OSError as error:
        theirs = "the agent of another user left it: the next step is that user's to take"
        hint = theirs if isinstance(error, PermissionError) else None
        raise RunDirUnusable(run_dir, f"{error.filename}: {error.strerror}", hint=hint) from error
    is_too_much = len(stdout) > max_output_bytes
    return AgentRun(
        outcome="lost" if exit_code is None else "too-much-output" if is_too_much else "exited",
        exit_code=exit_code,
        stdout=stdout[:max_output_bytes],
        stderr=stderr,
        started_ms=begun_ns // 1_000_000,
        duration_ms=(ended_ns - begun_ns) // 1_000_000,
    )


def may_be_read(run_dir: str) -> bool:
    """Check that what the agent prints is no other user's alone."""
    path = os.path.join(run_dir, STDOUT)
    return os.access(path, os.R_OK) or not os.path.exists(path)


def find_run_start_ms(run_dir: str, *, file: str = PID) -> int | None:
    """Return when the agent began, in milliseconds since 1970; None if it has not.

    By another *file* than the pid file: when the agent wrote into that last.
    """
    try:
        pid = os.stat(os.path.join(run_dir, file))
    except FileNotFoundError:
        return None
    return pid.st_mtime_ns // 1_000_000 if pid.st_size else None


def find_last_output_ms(run_dir: str) -> int | None:
    """Return when the agent printed last, or else began, in milliseconds since 1970."""
    found = [find_run_start_ms(run_dir, file=each) for each in (PID, STDOUT, STDERR)]
    return max((each for each in found if each is not None), default=None)


def read_run_group(run_dir: str) -> int | None:
    try:
        path = os.path.join(run_dir, PID)
        group = int(read_left_file(path, most_bytes=_LONGEST_NUMBER).content)
    except (OSError, ValueError):
        return None
    # To kill(2), 0 is our own group and 1 every process.
    return group if group > 1 else None


def create_run_outputs(run_dir: str, *, mode: int = 0o600) -> Outputs:
    """Create *run_dir* with empty outputs, replacing a dead engine's, with room for an answer."""
    place = Path(run_dir)
    if any(_has_content(place / name) for name in (PID, EXIT)):
        raise Refused(
            f"an agent has already begun in {run_dir}",
            code="already-begun",
            hint="its result is still there; remove the directory to run the agent again",
            run_dir=run_dir,
        )
    files: dict[str, OutputFile] = {}
    with ExitStack() as on_failure:
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name, length in _RESERVED_BYTES.items():
                path = str(place / name)
                files[name] = create_output(path, reserved_bytes=length, mode=mode)
                on_failure.callback(os.unlink, path)
                on_failure.callback(files[name].close)
        except OSError as error:
            raise RunDirUnusable(run_dir, error.strerror or str(error)) from error
        on_failure.pop_all()
    files[RESERVED_EXIT].close()
    return Outputs(files[STDOUT], files[STDERR])


def keep_exit_code(run_dir: Path, exit_code: int) -> None:
    """Write the exit status that a living engine knows, if the agent's shell could not."""
    reserved = run_dir / RESERVED_EXIT
    # The engine goes on with what it knows.
    with suppress(OSError):
        if _read_status(run_dir / EXIT) is not None:
            reserved.unlink(missing_ok=True)
            return
        if _read_status(reserved) is None:
            reserved.unlink(missing_ok=True)
            reserved.write_bytes(b"%d\n" % exit_code)
        reserved.replace(run_dir / EXIT)


def _has_content(path: Path) -> bool:
    with suppress(OSError):
        return path.stat().st_size > 0
    return False


def _find_exit(place: Path) -> tuple[str, int | None]:
    """Return the file that holds the exit status, and the status, if there is one."""
    for name in (EXIT, RESERVED_EXIT):
        exit_code = _read_status(place / name)
        if exit_code is not None:
            return name, exit_code
    return STDOUT, None


def _read_status(path: Path) -> int | None:
    try:
        content = read_left_file(str(path), most_bytes=_LONGEST_NUMBER).content
    except OSError:
        return None
    status = _STATUS.fullmatch(content)
    return int(status[1]) if status else None


# Stop a run from outside: an agent that another engine started, or that outlived its engine.
#
# A group is signalled only while a member has the run's lock file open, which only the agent and
# its children do, or while a process lives that was a member at that time: so a reused id is
# never hit. A process that left the group (setsid) is not found. Without /proc, the held lock and
# the group in the pid file decide.

# Each look is a search through /proc.
_LONGEST_TICK_S = 0.05


def find_group(run_dir: str, alive_path: str) -> int | None:
    """Return the process group of the agent that runs in *run_dir*; None if it is unknown.

    *alive_path* is the lock that it holds while it lives. Without /proc the result is what the
    pid file says, and the caller has to check the lock.
    """
    # After the end, a daemon that the agent left behind may hold the lock.
    if read_run_state(run_dir, alive_is_held=True) == "finished":
        return None
    group = read_run_group(run_dir)
    return group if group is not None and _is_of_run(group, alive_path) is not False else None


def is_left_behind(run_dir: str, alive_path: str) -> bool:
    """Return whether the held lock *alive_path* is held by daemons of an agent that has ended.

    True is proven: nobody in the agent's group has the lock open, and a process outside holds it
    that can be seen from here. A holder that cannot be seen (another user, container or machine,
    no /proc) may be the agent. The run has no living engine, which would hold the lock too.
    """
    group = read_run_group(run_dir)
    if group is None or _is_of_run(group, alive_path) is not False:
        return False
    try:
        lock = os.stat(alive_path)
    except OSError:
        return False
    return any(_holds(each.pid, lock) for each in list_processes() or () if each.group != group)


def stop_run(run_dir: str, alive_path: str, *, grace_s: float, is_held: Callable[[], bool]) -> bool:
    """End the agent that runs in *run_dir*: SIGTERM, wait at most *grace_s*, SIGKILL.

    Return whether there was an agent. Its engine sees an ordinary end. *is_held* returns whether
    the lock of the run is held; it is called only where there is no /proc.
    """
    group = find_group(run_dir, alive_path)
    # Members that have closed the lock file are stopped too.
    known = set() if group is None else _find_members(group)

    def lives() -> bool:
        # Checked before each signal: the group may have ended and its id be reused.
        nonlocal known
        if group is None:
            return False
        now, is_ours = _find_members(group), _is_of_run(group, alive_path)
        is_ours = is_held() if is_ours is None else is_ours or bool(known & now)
        known = now
        return is_ours

    if group is None or not lives():
        return False
    ask_group(group)
    if not has_ended(lives, within_s=grace_s, longest_tick_s=_LONGEST_TICK_S):
        kill_group(group)
        has_ended(lives, within_s=TEAR_DOWN_S, longest_tick_s=_LONGEST_TICK_S)
    return True


def _is_of_run(group: int, alive_path: str) -> bool | None:
    """Return whether a member of *group* has the lock open; None where there is no /proc."""
    try:
        lock = os.stat(alive_path)
    except OSError:
        lock = None
    # The shell that leads the group lives as long as the agent. Checking it first saves a search
    # through all processes for each of hundreds of runs.
    if lock is not None and _has_open(group, lock):
        return True
    members = list_members(group)
    if members is None:
        return None
    return lock is not None and any(_has_open(each.pid, lock) for each in members)


def _find_members(group: int) -> set[tuple[int, int]]:
    """Return pid and start of each member: together they are never reused."""
    return {(each.pid, each.start) for each in list_members(group) or ()}


def _has_open(pid: int, lock: os.stat_result) -> bool:
    return any(True for _ in _list_open(pid, lock))


def _holds(pid: int, lock: os.stat_result) -> bool:
    """Return whether a process holds the flock(2), and not only looks at its file."""
    for name in _list_open(pid, lock):
        with suppress(OSError), open(f"/proc/{pid}/fdinfo/{name}", encoding="utf-8") as file:
            # Source: proc(5), /proc/<pid>/fdinfo, "lock".
            if any(line.startswith("lock:") and " FLOCK " in line for line in file):
                return True
    return False


def _list_open(pid: int, lock: os.stat_result) -> Iterator[str]:
    """Yield the descriptors by which a process has *lock* open."""
    folder = f"/proc/{pid}/fd"
    # It ended just now, or belongs to another user.
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                if os.path.samestat(os.stat(f"{folder}/{name}"), lock):
                    yield name
