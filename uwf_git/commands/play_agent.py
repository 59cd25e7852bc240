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
from collections.abc import Callable, Iterator
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
from uwf_git.agents.request import DEFAULT_MAX_OUTPUT_BYTES, AgentRequest, AgentRun
from uwf_git.agents.spool import Finished, Lost, Running, collect, look_up
from uwf_git.commands.agent_name import agent_name
from uwf_git.commands.left_files import read_left
from uwf_git.commands.mask_turn import mask_played
from uwf_git.commands.turn import Left, Played, Player, Turn
from uwf_git.engine.subject import first_line
from uwf_git.errors import AgentFailed, Conflict
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.durable import remove, replace_file
from uwf_git.store.file_lock import hold_lock
from uwf_git.store.refs import Oid, is_oid
from uwf_git.store.store import Store

OnStderr = Callable[[bytes], None]

_ENDED_BY_SIGNAL = 128

# Beside the folder of a run: held while its agent lives, whose it is, and the agent's own files.
_ALIVE, _TURN, _FILES = ".alive", ".turn", ".files"

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


def agent_player(on_stderr: OnStderr) -> Player:
    """Make a player that runs the turn's agent command; its stderr goes to *on_stderr* live."""

    def play(turn: Turn) -> Played:
        return play_agent(turn, on_stderr)

    return play


def play_agent(turn: Turn, on_stderr: OnStderr) -> Played:
    """Run the agent of *turn*, or take up the run of an engine that died, and read its reply.

    Raises:
        BadCommand, WorkdirMissing: it cannot even be tried; nothing is recorded.
        OtherAgentRuns: another agent is at work on this very step.
    """
    try:
        with _run_folder(turn) as folder:
            run, left = _run_and_look(turn, folder, on_stderr)
    except (ProgramMissing, SpawnFailed) as error:
        return _failed_to_start(turn, error)
    played = _read_run(run, turn.agent.payload.get("protocol", "positional"))
    if run.outcome == "exited" and run.exit_code and left.kind is not None:
        played = played._replace(error={**(played.error or {}), "kind": left.kind})
    return mask_played(played._replace(left=left), _own_environ(turn))


def _run_and_look(turn: Turn, folder: str, on_stderr: OnStderr) -> tuple[AgentRun, Left]:
    try:
        run = _run_or_take_up(turn, folder, on_stderr)
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
    for suffix in (_ALIVE, _TURN):
        remove(run + suffix)
    if not any(map(_holds_work, _list_runs(folder))):
        shutil.rmtree(folder, ignore_errors=True)


def list_finished_runs(store: Store, thread: ThreadId) -> list[Oid]:
    """List the commits of *thread* after which an agent has finished, and nobody recorded it."""
    if not store.is_kept:
        return []
    runs = _list_runs(store.local_path("run", thread))
    return [Oid(os.path.basename(run)) for run in runs if _is_finished(run)]


def is_run_of(turn: Turn) -> bool:
    """Tell whether the run that lies there for the commit of *turn* was begun by such a turn."""
    run_dir = turn.store.local_path("run", turn.thread, turn.snapshot.commit.oid)
    return _read_turn(run_dir) == _describe_turn(turn)


def _is_finished(run_dir: str) -> bool:
    with hold_lock(run_dir + _ALIVE, wait=False) as alive:
        return isinstance(look_up(run_dir, alive_is_held=alive is None), Finished)


def _list_runs(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder) if is_oid(name)]
    except FileNotFoundError:
        return []


def _holds_work(run_dir: str) -> bool:
    with hold_lock(run_dir + _ALIVE, wait=False) as alive:
        return isinstance(look_up(run_dir, alive_is_held=alive is None), Finished | Running)


@contextmanager
def _run_folder(turn: Turn) -> Iterator[str]:
    if turn.store.is_kept:
        yield turn.store.local_path("run", turn.thread)
        return
    with tempfile.TemporaryDirectory(prefix="uwf-run-") as folder:
        yield folder


def _run_or_take_up(turn: Turn, folder: str, on_stderr: OnStderr) -> AgentRun:
    run_dir = _run_dir(turn, folder)
    while True:
        # Held by the agent as long as it lives, so that it tells when ours is not the first.
        with hold_lock(run_dir + _ALIVE, wait=False) as alive:
            _check_same_agent(turn, run_dir, is_held=alive is None)
            found = look_up(run_dir, alive_is_held=alive is None)
            if isinstance(found, Finished | Lost):
                return collect(run_dir, max_output_bytes=DEFAULT_MAX_OUTPUT_BYTES)
            if not isinstance(found, Running):
                kept = () if alive is None else (alive,)
                return run_agent(_request(turn, run_dir, kept), on_stderr=on_stderr)
        on_stderr(b"the agent of a step that was cut short is still at work; waiting for it\n")
        with hold_lock(run_dir + _ALIVE, wait=True):
            pass


def _run_dir(turn: Turn, folder: str) -> str:
    return os.path.join(folder, turn.snapshot.commit.oid)


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
        timeout_s=payload.get("timeout"),
        kept_fds=kept_fds,
    )


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
