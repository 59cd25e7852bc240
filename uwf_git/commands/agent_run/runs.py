"""The runs of a thread that are not recorded yet: who plays them, and stopping them."""

import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from uwf_git.agents.command_line import DEFAULT_GRACE_S, BadJson, agent_name, parse_strict_json
from uwf_git.agents.files import LeftFile, open_left_file, read_left_file
from uwf_git.agents.group import leave_group
from uwf_git.agents.run_files import (
    RunState,
    find_group,
    find_last_output_ms,
    find_run_start_ms,
    is_left_behind,
    may_be_read,
    read_run_state,
    stop_run,
)
from uwf_git.commands.caller import Caller
from uwf_git.commands.family import Family
from uwf_git.commands.turn.turn import StepFiles, Turn
from uwf_git.errors import Conflict, Refused, StoreDamaged
from uwf_git.model.names import NodeHash, Oid, ThreadId, is_node_hash, is_thread_id
from uwf_git.model.text import first_line
from uwf_git.model.thread import AMOUNTS, add_usage, drop_unfit
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.history import Snapshot, read_snapshot
from uwf_git.store.threads.local_files import (
    RUNNING,
    RunDir,
    ThreadBusy,
    find_driver,
    find_holder,
    get_run_dir,
    has_runs,
    is_empty_and_removed,
    is_held_here,
    is_stopped,
    list_check_runs,
    list_possibly_active,
    list_run_dirs,
    lock_thread,
    remove_runs,
)
from uwf_git.surroundings import (
    list_processes,
    read_environ,
    read_name,
    read_process,
    read_process_start,
)

# The runs of a thread that are not recorded yet: who plays them, which have finished.


def read_state(run: RunDir) -> RunState:
    """Return the state of a run, taking its lock for a moment.

    The caller holds the thread's lock, or knows that the engine of the run is dead.
    """
    return read_found_state(run, is_held=run.is_alive())


def read_found_state(run: RunDir, *, is_held: bool) -> RunState:
    """Return the state of a run whose lock was found held or free, as ``read_state`` does.

    An agent that was killed may leave a daemon that holds the lock for ever.
    """
    state = read_run_state(run.path, alive_is_held=is_held)
    if state == "alive" and is_left_behind(run.path, run.alive):
        # The agent may have written its exit status meanwhile.
        return read_run_state(run.path, alive_is_held=False)
    return state


def is_finished(run: RunDir) -> bool:
    # The lock does not matter then: a daemon may hold it.
    return read_run_state(run.path, alive_is_held=False) == "finished"


def is_left(run: RunDir) -> bool:
    """Return whether another engine would find the answer of an agent in *run*."""
    return is_finished(run) or bool(run.read("report"))


def _is_unseen(run: RunDir) -> bool:
    """Return whether an agent whose process cannot be seen holds the lock of a run.

    Another user, container or machine runs it. The caller knows that no engine is at work,
    and sees no process of it.
    """
    is_begun = find_run_start_ms(run.path) is not None and os.path.exists(run.alive)
    return is_begun and read_state(run) == "alive"


def list_finished_runs(store: Store, thread: ThreadId) -> list[Oid]:
    return [run.commit for run in list_run_dirs(store, thread) if is_finished(run)]


def forget_run(store: Store, thread: ThreadId, started_after: Oid) -> None:
    """Remove the run that began after a commit: it has been recorded.

    Work that began after another commit stays: its engine died and the ref was moved without the
    thread's lock (a plain `git push` into this store), so it may exist nowhere else.
    """
    if has_runs(store, thread):
        # A function of this process leaves none.
        get_run_dir(store, thread, started_after).remove()
        forget_recorded_runs(store, thread)


def forget_recorded_runs(store: Store, thread: ThreadId) -> None:
    """Remove all runs of a thread, unless one is at work, or has finished and is not recorded."""
    if not is_empty_and_removed(store, thread) and not any(
        read_state(run) in ("finished", "alive") for run in list_run_dirs(store, thread)
    ):
        remove_runs(store, thread)


class BegunTurn(NamedTuple):
    role: str
    agent: NodeHash

    payload: Mapping[str, Any]

    at: str | None = None
    """The place of a flow that the turn plays."""


def describe_turn(turn: Turn) -> str:
    """Return the line by which the run directory names a turn: agent and place as JSON."""
    payload = turn.agent.payload
    line = f"{turn.role} {turn.agent.hash} {first_line(agent_name(payload['command']))}"
    place = "" if turn.at is None else f"{turn.at}\n"
    return f"{line}\n{json.dumps(payload)}\n{place}"


def read_begun_turn(run: RunDir) -> BegunTurn | None:
    """Return which turn a run belongs to; None if its directory names none that can be read."""
    line, _, rest = run.read("turn").partition("\n")
    document, _, place = rest.partition("\n")
    role, _, rest = line.partition(" ")
    name = rest.partition(" ")[0]
    try:
        payload = json.loads(document)
    except ValueError:
        return None
    if not is_node_hash(name) or not isinstance(payload, dict):
        return None
    return BegunTurn(role, NodeHash(name), payload, place.strip() or None)


def is_run_of(turn: Turn) -> bool:
    begun = read_begun_turn(turn.run_dir)
    if begun is None:
        return False
    return (begun.role, begun.agent, begun.at) == (turn.role, turn.agent.hash, turn.at)


def find_player(run: RunDir) -> tuple[str | None, str | None]:
    # That of a check has no agent.
    role, _, rest = run.read("turn").partition("\n")[0].partition(" ")
    return role or None, rest.partition(" ")[2] or None


# Stop an agent that is at work, whichever process started it.
#
# What it printed is recorded as a failed attempt by its engine, or by the next step if the engine
# is dead. Only processes of this machine and user, in the agent's process group, can be stopped.

_TICK_S = 0.02

# The engine only has to record the attempt then.
_PATIENCE_S = 30.0


class PlayedHere(ThreadBusy):
    """A Python function of this process plays the turn; it cannot be ended."""


class PlayedElsewhere(ThreadBusy):
    """Another user or machine plays the turn, and sees a pause or a request to kill after it."""


def stop_agents(store: Store, thread: ThreadId, *, reason: str) -> bool:
    """Stop the agents of *thread*, wait for their engines to record; return whether there were any.

    The caller prevents new steps (a pause, ``lock_stop``). An agent that called this process may
    take it along. Conflict: an agent without an engine cannot be seen from here, or another user or
    machine plays the turn.
    """
    stopped = False
    deadline = time.monotonic() + DEFAULT_GRACE_S + _PATIENCE_S
    while True:
        # All of them: the thread may have moved since an agent began.
        runs = (*list_run_dirs(store, thread), *list_check_runs(store, thread))
        for run in runs:
            stopped |= _stop(run, reason)
        holder = find_holder(store, thread)
        if holder is None:
            for run in runs:
                if _is_unseen(run) and find_group(run.path, run.alive) is None:
                    raise _agent_left_running(thread, run)
            return stopped
        pid = holder.get("pid")
        is_late = time.monotonic() >= deadline
        if pid == os.getpid() and (is_late or is_held_here(store, thread)):
            raise PlayedHere(thread, holder, hint="a Python function of this process is at work")
        # Without a role it has no agent, and will soon let go.
        other = _find_elsewhere(holder) if holder.get("role") and not stopped else None
        if other is not None:
            told = f"{other} runs its agent, which cannot be ended from here"
            wait = f"`uwf thread wait {thread}` waits for the end of the step"
            raise PlayedElsewhere(thread, holder, hint=f"{told}; {wait}")
        # A stopped process records nothing, however long this waits.
        if is_late or is_stopped(holder):
            raise ThreadBusy(
                thread, holder, hint=f"it does not end by itself; `kill {pid}` ends it"
            )
        time.sleep(_TICK_S)


@contextmanager
def lock_stopped(store: Store, caller: Caller, thread: ThreadId, *, reason: str) -> Iterator[None]:
    """Stop the agents of *thread* and hold its lock; the caller holds ``lock_stop``."""
    deadline = time.monotonic() + DEFAULT_GRACE_S + _PATIENCE_S
    with ExitStack() as stack:
        while True:
            stop_agents(store, thread, reason=reason)
            try:
                stack.enter_context(lock_thread(store, thread, since_ms=caller.now_ms()))
                break
            except ThreadBusy as busy:
                # A new step that is about to find lock_stop releases the lock in a moment.
                if time.monotonic() >= deadline or not busy.facts["holder"]:
                    raise
        yield


def _find_elsewhere(holder: dict[str, Any]) -> str | None:
    """Return who runs the *holder* of a lock, if it cannot be sent a signal from here."""
    pid = _pid(holder)
    if pid is None:
        return f"host {holder.get('host')}"
    try:
        os.kill(pid, 0)
    except PermissionError:
        with suppress(OSError, KeyError):
            return f"user {Path(f'/proc/{pid}').owner()}"
        return "another user"
    except (ProcessLookupError, OverflowError):
        # It ended just now, or its user has written no id of a process.
        pass
    return None


def _stop(run: RunDir, reason: str) -> bool:
    group = find_group(run.path, run.alive)
    if group is None:
        return False
    leave_group(group, run.alive)
    # The folder is gone if the run was recorded just now.
    with suppress(OSError):
        run.write_stop_reason(first_line(reason))
    return stop_run(run.path, run.alive, grace_s=DEFAULT_GRACE_S, is_held=run.is_alive)


# Check that no agent is at work on a thread before the thread is ended or moved.
#
# Otherwise its result could not be recorded any more, and the user would believe that it stopped.


def _agent_left_running(thread: ThreadId, run: RunDir) -> Conflict:
    group = find_group(run.path, run.alive)
    where = (
        f" (process group {group})"
        if group
        else "; it cannot be seen from here, so another user, container or machine runs it"
    )
    end_it = f"`kill -- -{group}` ends it" if group else "end it there"
    step = f"`uwf thread step {thread}`" + ("" if may_be_read(run.path) else " of its user")
    return Conflict(
        f"thread {thread} still has an agent at work, whose engine was killed{where}",
        code="agent-left-running",
        hint=f"{end_it}; the next {step} waits for it and takes its result",
        thread=thread,
        group=None if group is None else str(group),
    )


def check_nothing_runs(store: Store, snapshot: Snapshot) -> None:
    """Check that no agent is at work on the step after *snapshot*; the caller holds the lock."""
    thread = snapshot.record.thread
    agent = get_run_dir(store, thread, snapshot.turn_start)
    for run in (agent, *list_check_runs(store, thread)):
        if os.path.exists(run.alive) and read_state(run) == "alive":
            raise _agent_left_running(thread, run)


# Read the files that an agent leaves in its step directory ($UWF_STEP_DIR).
#
# Content that cannot be read counts as absent. Each file is read once and up to a limit: a daemon
# that the agent left behind may write there without end. A pipe in its place is not waited for.

PROMPT = "prompt.md"
TRACE = "trace.jsonl"
FAILURE = "failure.json"

_MOST_BYTES = 1024 * 1024
_LONGEST_LINE = 64 * 1024
_MOST_CHUNKS = 1024

# Up to here, the lines that are left out are counted.
_MOST_COUNTED_BYTES = 16 * _MOST_BYTES

_LATEST_MS = 10**16

# `interrupted` is reserved for agents that we stopped.
_KIND = re.compile(r"(?!interrupted$)[a-z][a-z0-9-]{0,39}")


def read_step_dir(step_dir: str) -> StepFiles:
    # Another user's: who shares the store put it there.
    if os.path.islink(step_dir):
        return StepFiles()
    failure = _parse_object(_read(os.path.join(step_dir, FAILURE)).content) or {}
    kind, usage, reset_at = (failure.get(name) for name in ("kind", "usage", "resetAt"))
    return StepFiles(
        prompt=_read_prompt(os.path.join(step_dir, PROMPT)),
        trace=_read_trace(os.path.join(step_dir, TRACE)),
        kind=kind if isinstance(kind, str) and _KIND.fullmatch(kind) else None,
        usage=usage if isinstance(usage, dict) and usage else None,
        reset_at=reset_at if type(reset_at) is int and 0 <= reset_at < _LATEST_MS else None,
    )


def add_to_trace(step_dir: str, event: Mapping[str, Any]) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(os.path.join(step_dir, TRACE), flags | os.O_CLOEXEC, 0o666)
    try:
        if stat.S_ISREG(os.fstat(file).st_mode):
            # The agent may not have ended its line.
            os.write(file, b"\n" + json.dumps(event).encode() + b"\n")
    finally:
        os.close(file)


class ReportedUsage:
    """What an agent has reported so far: the ``AMOUNTS`` of the turns in its trace."""

    def __init__(self, step_dir: str) -> None:
        self._path = os.path.join(step_dir, TRACE)
        self._offset = 0
        self._usage: dict[str, Any] = {}

    def read(self, *, is_over: bool = False) -> dict[str, Any]:
        """Return the sum of what was reported; only what is new in the trace is read.

        A look reads up to a limit. If the run *is_over*, no more follows.
        """
        with suppress(OSError), closing(open_left_file(self._path)) as file:
            size = file.size()
            for _ in range(_MOST_CHUNKS if is_over else 1):
                new = file.read(self._offset, min(size - self._offset, _MOST_BYTES))
                is_last = is_over and self._offset + len(new) == size
                end = len(new) if is_last else new.rfind(b"\n") + 1
                # A line without an end is read again, unless it is too long for an event.
                self._offset += end or len(new) // _MOST_BYTES * _MOST_BYTES
                self._add(new[:end])
                if is_last:
                    break
        return self._usage

    def _add(self, lines: bytes) -> None:
        for line in lines.splitlines():
            event = _parse_object(line) if b'"usage"' in line else None
            usage = event.get("usage") if event and event.get("type") == "turn" else None
            known = usage if isinstance(usage, dict) else {}
            spent = drop_unfit({name: known.get(name) for name in AMOUNTS})
            self._usage = add_usage(self._usage, spent)


def _read_prompt(path: str) -> str:
    beginning, size = _read(path)
    left_out = max(0, size - len(beginning))
    if left_out:
        # Cut where a line or a word ends: half a secret could not be masked.
        end = max(beginning.rfind(each, -_LONGEST_LINE) for each in (b"\n", b" "))
        end = len(beginning) if end < 0 else end
        beginning, left_out = beginning[:end], left_out + len(beginning) - end
    text = beginning.decode(errors="replace")
    return f"{text}\n[… {left_out:,} bytes left out …]\n" if left_out else text


def _read_trace(path: str) -> dict[str, Any] | None:
    """Return the events of a trace, and how many lines are bad or were left out."""
    content, size = _read(path, most_bytes=_MOST_COUNTED_BYTES)
    lines = content[:_MOST_BYTES].split(b"\n")
    rest = content[_MOST_BYTES:]
    # A last line without an end counts, and so does all that was not read.
    left_out = rest.count(b"\n") + (size > len(content) or not rest.endswith(b"\n"))
    if rest:
        # The line that was cut is counted by its end, among those left out.
        lines.pop()
    events, bad = [], 0
    for line in lines:
        if line.strip():
            event = _parse_object(line)
            bad += event is None
            events += [] if event is None else [event]
    counts = {"badLines": bad, "leftOut": left_out if rest else 0}
    told = {name: count for name, count in counts.items() if count}
    return {"events": events, **told} if events or told else None


def _parse_object(line: bytes) -> dict[str, Any] | None:
    with suppress(BadJson, UnicodeDecodeError):
        value = parse_strict_json(line.decode())
        return value if isinstance(value, dict) else None
    return None


def _read(path: str, *, most_bytes: int = _MOST_BYTES) -> LeftFile:
    with suppress(OSError):
        return read_left_file(path, most_bytes=most_bytes)
    return LeftFile(b"", 0)


# Who works on which thread of this store now, from lock files and run directories.
#
# A process counts by pid and start time, an agent by the lock that it holds open, so a reused pid
# is never taken for it. Looking takes no lock that a step may want, except for a moment that of a
# run without an engine: by the lock an agent of another user is known.


class Running(NamedTuple):
    thread: ThreadId
    role: str | None

    agent: str | None

    pid: int | None
    """The engine's pid; None if it is dead and its agent works on, or on another machine."""

    group: int | None
    """The agent's process group; None if there is no agent, or it is unknown."""

    since: int | None
    """Start of the step, or of the drive between two steps, in milliseconds since 1970."""

    is_driven: bool

    last_output: int | None = None
    """When its agent printed last, or else began, in milliseconds since 1970."""

    def view(self, **more: Any) -> dict[str, Any]:
        return {
            "role": self.role,
            "agent": self.agent,
            "pid": self.pid,
            "group": self.group,
            "since": self.since,
            **more,
            "driven": self.is_driven,
            "lastOutput": self.last_output,
        }


def find_running(store: Store, thread: ThreadId) -> Running | None:
    """Return the step, driver or orphaned agent that works on *thread*, or None."""
    holder, driver = find_holder(store, thread), find_driver(store, thread)
    run, group = _find_agent(store, thread, is_led=holder is not None)
    output = None if run is None else find_last_output_ms(run.path)
    if holder is None and run is not None:
        role, agent = find_player(run)
        pid = None if driver is None else _pid(driver)
        since = find_run_start_ms(run.path)
    else:
        told = driver if holder is None else holder
        if told is None:
            return None
        role, agent = (str(told[name]) if told.get(name) else None for name in ("role", "agent"))
        pid, begun = _pid(told), told.get("since")
        since = begun if isinstance(begun, int) else None
    return Running(thread, role, agent, pid, group, since, driver is not None, output)


def is_at_work(store: Store, thread: ThreadId) -> bool:
    # Locks first: the search for an orphaned agent costs more.
    is_locked = find_holder(store, thread) or find_driver(store, thread)
    return bool(is_locked) or _find_agent(store, thread)[0] is not None


def is_any_at_work(store: Store, family: Family) -> bool:
    # The thread first, which costs least.
    if is_at_work(store, family.root):
        return True
    return any(is_at_work(store, each) for each in list_possibly_active(store) if each in family)


def stamp_work(store: Store) -> dict[ThreadId, tuple[object, ...]]:
    """Return what tells the work on each thread from earlier work on it; no object is read."""
    return {
        thread: (
            find_holder(store, thread),
            find_driver(store, thread),
            [each.path for each in list_run_dirs(store, thread)],
        )
        for thread in list_possibly_active(store)
    }


def list_running(store: Store, root: ThreadId | None = None) -> list[Running]:
    """List the threads of *store*, or *root* and its branches, that are worked on, newest first."""
    family = None if root is None else Family(store, root)
    threads = list_possibly_active(store)
    found = (find_running(store, each) for each in threads if family is None or each in family)
    return [running for running in found if running is not None]


def running_rows(
    store: Store, *, now_ms: int, root: ThreadId | None = None
) -> list[dict[str, Any]]:
    """Return the rows of `uwf ps`, one for each thread that is being worked on.

    After them one for each process that an agent left running (*status* ``left``, Linux). With
    *root* only those of that thread and its branches.
    """
    family = None if root is None else Family(store, root)
    rows = [_row(store, running, now_ms) for running in list_running(store, root)]
    left = (each for each in _list_left(store) if family is None or each.thread in family)
    return rows + [{**_row(store, each, now_ms), "status": "left"} for each in left]


def _list_left(store: Store) -> Iterator[Running]:
    """Yield processes that agents left when they had answered: their turn's directory is gone."""
    for process in list_processes() or ():
        environ = read_environ(process.pid)
        thread, step_dir = environ.get(THREAD_VARIABLE, ""), environ.get("UWF_STEP_DIR")
        if environ.get("UWF_REPO") != store.path or not is_thread_id(thread):
            continue
        if step_dir and not os.path.exists(step_dir):
            role, name = environ.get("UWF_ROLE"), read_name(process.pid)
            yield Running(
                ThreadId(thread), role, name, process.pid, process.group, None, is_driven=False
            )


def show_status(status: str, running: Running | None) -> str:
    """Return the *status* to show: a ready thread that is being worked on is ``running``."""
    if running is None:
        return status
    # While a thread waits for a limit its driver sleeps; an agent at work means the limit is over.
    is_over = status == "waiting" and running.group is not None
    return RUNNING if status == "ready" or is_over else status


def _find_agent(
    store: Store, thread: ThreadId, *, is_led: bool = False
) -> tuple[RunDir | None, int | None]:
    """Return the run and process group that are at work on *thread*, also if its engine is dead.

    *is_led*: an engine lives, so an agent that cannot be seen need not be looked for.
    """
    for run in (*list_run_dirs(store, thread), *list_check_runs(store, thread)):
        group = find_group(run.path, run.alive)
        # With /proc, find_group has seen that the group holds the lock.
        if group is not None and (read_process_start(os.getpid()) is not None or run.is_alive()):
            return run, group
        if group is None and not is_led and _is_unseen(run):
            return run, None
    return None, None


def _pid(told: dict[str, Any]) -> int | None:
    pid = told.get("pid")
    return pid if isinstance(pid, int) and told.get("host") == os.uname().nodename else None


def _row(store: Store, running: Running, now_ms: int) -> dict[str, Any]:
    record = None
    with suppress(StoreDamaged):
        head = find_head(store, running.thread)
        record = None if head is None else read_snapshot(store, head.commit).record
    parent = None if record is None else record.parent_thread
    return {
        "thread": running.thread,
        "status": None if record is None else show_status(record.status, running),
        "workflow": None if record is None else record.workflow,
        "workflowName": None if record is None else record.workflow_name,
        **running.view(elapsedMs=None if running.since is None else max(0, now_ms - running.since)),
        **({} if parent is None else {"parentThread": parent}),
    }


# Whether the caller is an agent that a thread waits for: its process, or a function of this one.
#
# It can never see the end of that thread's work.

THREAD_VARIABLE = "UWF_THREAD_ID"


def refuse_inside(store: Store, thread: ThreadId, environ: Mapping[str, str]) -> None:
    """Check that *thread* does not wait for the caller, whose environment is *environ*."""
    own = environ.get(THREAD_VARIABLE)
    is_own = own == thread and is_at_work(store, thread)
    # Without the variable it is no agent: a program may run threads and wait for them.
    is_below = own and any(
        map(_is_ancestor, (find_holder(store, thread), find_driver(store, thread)))
    )
    if is_own or is_below or is_held_here(store, thread):
        raise Refused(
            f"thread {thread} waits for the agent that runs this command, so its work cannot end "
            "before this command does",
            code="inside-thread",
            hint="end the agent with its result, and wait outside of it",
            thread=thread,
        )


def _is_ancestor(holder: dict[str, Any] | None) -> bool:
    """Check whether the *holder* of a lock is a process that started this one."""
    process = read_process(os.getppid())
    while holder is not None and process is not None:
        if (process.pid, process.start) == (holder.get("pid"), holder.get("start")):
            return True
        process = read_process(process.parent)
    return False
