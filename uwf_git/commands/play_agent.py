"""Playing by command: an agent's process plays a role.

Owns: what an agent process is given, where its output lies meanwhile, and telling a failure.
Knows nothing of: what is recorded. Always true: a run is kept below
`<git dir>/uwf/run/<thread>/<commit>/` until the ref has moved, under the commit that it started
from: an engine that was killed leaves its agent's work to the next one, and a retry never
takes up an older try.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uwf_git.agents.command_line import (
    ProgramMissing,
    Protocol,
    build_argv,
    build_search_path,
    resolve_program,
)
from uwf_git.agents.process import AgentInterrupted, SpawnFailed, run_agent
from uwf_git.agents.reply import BadReply, parse_reply
from uwf_git.agents.request import (
    DEFAULT_MAX_OUTPUT_BYTES,
    AgentRequest,
    AgentRun,
    Listener,
    OnOutput,
    OnTick,
    ignore_tick,
)
from uwf_git.agents.spool import Finished, Lost, Running, collect, look_up
from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.check_limits import tell_cut_short
from uwf_git.commands.left_agent import LeftRun, stay_with
from uwf_git.commands.left_files import read_left
from uwf_git.commands.mask_log import masked_listener
from uwf_git.commands.mask_turn import mask_played
from uwf_git.commands.running_slots import running_slot
from uwf_git.commands.turn import Left, Played, Player, Turn
from uwf_git.engine.limits import find_time_left_s
from uwf_git.engine.subject import first_line
from uwf_git.errors import AgentFailed, Conflict
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.durable import remove, replace_file
from uwf_git.store.file_lock import hold_lock
from uwf_git.store.refs import Oid, is_oid
from uwf_git.store.store import Store

_ENDED_BY_SIGNAL = 128

ALIVE = ".alive"
"""Beside the folder of a run: the lock that is held while its agent lives."""

# And whose it is, why it was stopped from outside, and the agent's own files.
_TURN, _STOPPED, _FILES = ".turn", ".stopped", ".files"

_LONGEST_REASON = 1000

# How the kit's agents begin their last two lines.
_ERROR, _HINT = "error: ", "hint: "


class OtherAgentRuns(Conflict):
    """The agent of a step that was cut short still lives, and it is not the one asked for."""

    code = "other-agent-runs"

    def __init__(self, thread: ThreadId, other: str) -> None:
        super().__init__(
            f"thread {thread} still has another agent at work: {other}",
            hint="step as before, with the same --agent if there was one, to wait for it and "
            "take its result",
            thread=thread,
            agent=other,
        )


def agent_player(
    on_stderr: OnOutput | None,
    *,
    on_stdout: OnOutput | None = None,
    on_tick: OnTick = ignore_tick,
) -> Player:
    """Make a player that runs the turn's agent command; what it prints is heard live, masked."""
    listener = Listener(on_stderr, on_stdout, on_tick)

    def play(turn: Turn) -> Played:
        return play_agent(turn, listener)

    return play


def play_agent(turn: Turn, listener: Listener) -> Played:
    """Run the agent of *turn*, or take up the run of an engine that died, and read its reply.

    What *listener* hears is masked as what is recorded is.

    Raises:
        BadCommand, WorkdirMissing: it cannot even be tried; nothing is recorded.
        OtherAgentRuns: another agent is at work on this very step.
        What ``running_slot`` raises.
    """
    try:
        with _run_folder(turn) as folder, masked_listener(listener, _own_environ(turn)) as masked:
            run, left = _run_and_look(turn, folder, masked)
            stopped = _read_stop_reason(_run_dir(turn, folder))
    except (ProgramMissing, SpawnFailed) as error:
        return _failed_to_start(turn, error)
    played = _read_run(run, turn.agent.payload.get("protocol", "positional"))
    if stopped is not None and played.reply is None:
        why = {"kind": "interrupted", "message": f"it was stopped: {stopped}"}
        played = played._replace(error=why, hint=None, is_stopped=True)
    elif run.outcome == "exited" and run.exit_code and left.kind is not None:
        played = played._replace(error={**(played.error or {}), "kind": left.kind})
    elif run.outcome == "timed-out":
        played = _name_limit(turn, played)
    return mask_played(played._replace(left=left), _own_environ(turn))


def _run_and_look(turn: Turn, folder: str, listener: Listener) -> tuple[AgentRun, Left]:
    try:
        run = _run_or_take_up(turn, folder, listener)
    except AgentInterrupted as interrupt:
        run = interrupt.run
    return run, read_left(_step_dir(_run_dir(turn, folder)))


def _read_run(run: AgentRun, protocol: Protocol) -> Played:
    if run.outcome != "exited" or run.exit_code != 0:
        return _played(run, kind=run.outcome, message=_account(run), hint=_last_hint(run.stderr))
    try:
        reply = parse_reply(run.stdout, protocol=protocol)
    except BadReply as error:
        return _played(run, kind=error.kind, message=error.message, hint=error.hint)
    return Played(reply, run.started_ms, run.duration_ms, stdout=run.stdout, stderr=run.stderr)


def forget_runs(store: Store, thread: ThreadId, tip: Oid) -> None:
    """Remove what the run of *thread* after *tip* left: its ref has moved, so it is in git.

    Work that was begun after another commit stays. Its engine died, and somebody moved the ref
    without looking (a plain `git push` into this store), so it may be nowhere else.
    """
    if not store.is_kept:
        return
    folder = store.local_path("run", thread)
    run = os.path.join(folder, tip)
    for path in (run, run + _FILES):
        shutil.rmtree(path, ignore_errors=True)
    for suffix in (ALIVE, _TURN, _STOPPED):
        remove(run + suffix)
    if not any(map(_holds_work, _list_runs(folder))):
        shutil.rmtree(folder, ignore_errors=True)


def list_finished_runs(store: Store, thread: ThreadId) -> list[Oid]:
    """List the commits of *thread* after which an agent has finished, and nobody recorded it."""
    runs = list_runs(store, thread)
    return [Oid(os.path.basename(run)) for run in runs if _is_finished(run)]


def list_runs(store: Store, thread: ThreadId) -> list[str]:
    """List the folders of all runs of *thread* that nobody has forgotten yet."""
    return _list_runs(store.local_path("run", thread)) if store.is_kept else []


def write_stop_reason(run_dir: str, reason: str) -> None:
    """Leave word for whoever records the run in *run_dir* why its agent is being stopped."""
    told = first_line(reason)[:_LONGEST_REASON].encode(errors="replace")
    replace_file(run_dir + _STOPPED, told + b"\n", durable=False)


def _read_stop_reason(run_dir: str) -> str | None:
    try:
        with open(run_dir + _STOPPED, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST_REASON).rstrip("\n")
    except FileNotFoundError:
        return None


def is_run_of(turn: Turn) -> bool:
    """Tell whether the run that lies there for the commit of *turn* was begun by such a turn."""
    run_dir = turn.store.local_path("run", turn.thread, turn.base)
    return _read_turn(run_dir) == _describe_turn(turn)


def find_player(run_dir: str) -> tuple[str | None, str | None]:
    """Give the role that is played in *run_dir* and the name of its agent, as far as it is known.

    For those who find an agent whose engine is dead.
    """
    role, _, rest = _read_turn(run_dir).partition(" ")
    return role or None, rest.partition(" ")[2] or None


def _is_finished(run_dir: str) -> bool:
    with hold_lock(run_dir + ALIVE, wait=False) as alive:
        return isinstance(look_up(run_dir, alive_is_held=alive is None), Finished)


def _list_runs(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder) if is_oid(name)]
    except FileNotFoundError:
        return []


def _holds_work(run_dir: str) -> bool:
    with hold_lock(run_dir + ALIVE, wait=False) as alive:
        return isinstance(look_up(run_dir, alive_is_held=alive is None), Finished | Running)


@contextmanager
def _run_folder(turn: Turn) -> Iterator[str]:
    if turn.store.is_kept:
        yield turn.store.local_path("run", turn.thread)
        return
    with tempfile.TemporaryDirectory(prefix="uwf-run-") as folder:
        yield folder


def _run_or_take_up(turn: Turn, folder: str, listener: Listener) -> AgentRun:
    run_dir = _run_dir(turn, folder)
    while True:
        # Held by the agent as long as it lives, so that it tells when ours is not the first.
        with hold_lock(run_dir + ALIVE, wait=False) as alive:
            _check_same_agent(turn, run_dir, is_held=alive is None)
            found = look_up(run_dir, alive_is_held=alive is None)
            if isinstance(found, Finished | Lost):
                return collect(run_dir, max_output_bytes=DEFAULT_MAX_OUTPUT_BYTES)
            if not isinstance(found, Running):
                kept = () if alive is None else (alive,)
                with running_slot(turn, run_dir, listener) as slot:
                    return run_agent(_request(turn, run_dir, (*kept, *slot)), listener)
        outcome = stay_with(LeftRun(run_dir, run_dir + ALIVE, _timeout_s(turn)), listener)
        if outcome is not None:
            run = collect(run_dir, max_output_bytes=DEFAULT_MAX_OUTPUT_BYTES)
            return run._replace(outcome=outcome)


def _run_dir(turn: Turn, folder: str) -> str:
    return os.path.join(folder, turn.base)


def _step_dir(run_dir: str) -> str:
    return run_dir + _FILES


def _own_environ(turn: Turn) -> dict[str, str]:
    return {**turn.environ, **turn.agent.payload.get("env", {})}


def _check_same_agent(turn: Turn, run_dir: str, *, is_held: bool) -> None:
    """Let a run be taken up only by the turn that began it; another agent's is put aside."""
    mine, theirs = _describe_turn(turn), _read_turn(run_dir)
    if theirs == mine:
        return
    if is_held:
        raise OtherAgentRuns(turn.thread, theirs.split(" ", 2)[-1] or "unknown")
    for each in (run_dir, _step_dir(run_dir)):
        shutil.rmtree(each, ignore_errors=True)
    remove(run_dir + _STOPPED)
    # A power loss ends the agent as well: nothing is left to be told apart.
    replace_file(run_dir + _TURN, mine.encode(), durable=False)


def _describe_turn(turn: Turn) -> str:
    command = turn.agent.payload["command"]
    return f"{turn.role} {turn.agent.hash} {first_line(agent_name(command))}"


def _read_turn(run_dir: str) -> str:
    try:
        with open(run_dir + _TURN, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _request(turn: Turn, run_dir: str, kept_fds: tuple[int, ...]) -> AgentRequest:
    payload = turn.agent.payload
    environ = _own_environ(turn)
    path = build_search_path(environ.get("PATH", os.defpath))
    argv = build_argv(
        payload["command"],
        protocol=payload.get("protocol", "positional"),
        thread=turn.thread,
        role=turn.role,
    )
    program = resolve_program(argv[0], path=path, workdir=turn.workdir)
    return AgentRequest(
        argv=(program, *argv[1:]),
        environment=_environment(turn, run_dir, environ | {"PATH": path}),
        workdir=turn.workdir,
        run_dir=run_dir,
        timeout_s=_timeout_s(turn),
        kept_fds=kept_fds,
    )


def _timeout_s(turn: Turn) -> float | None:
    """Give how long the agent may take: its own limit, or what the thread has left."""
    limits = (turn.agent.payload.get("timeout"), find_time_left_s(turn.present))
    return min((each for each in limits if each is not None), default=None)


def _name_limit(turn: Turn, played: Played) -> Played:
    """Say so if it was the thread's limit, and not its own, that ended an agent."""
    told = tell_cut_short(turn.thread, turn.present, own_s=turn.agent.payload.get("timeout"))
    if told is None:
        return played
    message, hint = told
    return played._replace(error={**(played.error or {}), "message": message}, hint=hint)


def _environment(turn: Turn, run_dir: str, environ: dict[str, str]) -> dict[str, str]:
    step_dir = _step_dir(run_dir)
    os.makedirs(step_dir, exist_ok=True)
    return {
        **environ,
        "UWF_REPO": turn.store.path,
        "UWF_THREAD_ID": turn.thread,
        "UWF_ROLE": turn.role,
        "UWF_HEAD": turn.snapshot.record.node,
        "UWF_ATTEMPT": str(turn.attempt),
        "UWF_WORKFLOW": turn.snapshot.record.workflow,
        "UWF_TRACE": os.path.join(step_dir, "trace.jsonl"),
        "UWF_STEP_DIR": step_dir,
    }


def _account(run: AgentRun) -> str:
    """Say how a run ended that did not end well."""
    if run.outcome == "timed-out":
        return f"it took longer than it may ({run.duration_ms / 1000:.1f} s), and was stopped"
    if run.outcome == "too-much-output":
        return f"it printed more than {DEFAULT_MAX_OUTPUT_BYTES // 2**20} MiB, and was stopped"
    if run.outcome == "interrupted":
        return "it was interrupted"
    if run.outcome == "lost" or run.exit_code is None:
        return "it was killed, and nobody knows how far it came"
    if run.exit_code > _ENDED_BY_SIGNAL:
        how = f"signal {run.exit_code - _ENDED_BY_SIGNAL} ended it"
    else:
        how = f"exit status {run.exit_code}"
    said = _last_line(run.stderr)
    return f"{how}: {said}" if said else how


def _last_line(stderr: bytes) -> str:
    for line in reversed(stderr.decode(errors="replace").splitlines()):
        if line.strip() and not line.startswith(_HINT):
            return first_line(line.removeprefix(_ERROR))[:300]
    return ""


def _last_hint(stderr: bytes) -> str | None:
    """Give what an agent says to type next, as the kit's do: in its very last line."""
    line = stderr.decode(errors="replace").rstrip().rpartition("\n")[2]
    return first_line(line.removeprefix(_HINT))[:300] if line.startswith(_HINT) else None


def _played(run: AgentRun, **error: Any) -> Played:
    hint = error.pop("hint", None)
    return Played(
        reply=None,
        started_ms=run.started_ms,
        duration_ms=run.duration_ms,
        error=error,
        hint=hint,
        exit_code=run.exit_code,
        stdout=run.stdout,
        stderr=run.stderr,
    )


def _failed_to_start(turn: Turn, error: AgentFailed) -> Played:
    return Played(
        reply=None,
        started_ms=turn.snapshot.commit.time_s * 1000,
        duration_ms=0,
        error={"kind": error.code, "message": error.message},
        hint=error.hint,
    )
