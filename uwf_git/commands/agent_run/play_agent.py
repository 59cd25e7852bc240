"""Play a turn by its agent command: run it, or take up an orphaned run, and read its reply."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from uwf_git.agents.command_line import (
    DEFAULT_GRACE_S,
    DEFAULT_MAX_LOG_BYTES,
    DEFAULT_MAX_OUTPUT_BYTES,
    MAX_LOGGED_BYTES,
    AgentReply,
    AgentRequest,
    AgentRun,
    BadJson,
    BadReply,
    BadReplyKind,
    Listener,
    OnOutput,
    OnTick,
    ProgramMissing,
    Protocol,
    RunOutcome,
    build_argv,
    build_search_path,
    parse_reply,
    parse_strict_json,
    resolve_program,
)
from uwf_git.agents.files import BadFileBelow, read_json_below, remove_below
from uwf_git.agents.group import check_cancelled
from uwf_git.agents.process import AgentInterrupted, SpawnFailed, run_agent
from uwf_git.agents.run_files import (
    STDERR,
    STDOUT,
    find_run_start_ms,
    may_be_read,
    read_run_result,
    read_run_state,
    stop_run,
)
from uwf_git.commands.agent_run.run_checks import (
    NotStarted,
    Secrets,
    agent_environ,
    cut_to_lines,
    describe_end,
    find_key_names,
    find_timeout_s,
    find_turn_secrets,
    mask_played,
    mask_run,
    masked_listener,
    private_mode,
    read_secrets,
    require_programs,
    run_checks,
    turn_environment,
    write_fingerprints,
)
from uwf_git.commands.agent_run.runs import (
    ReportedUsage,
    describe_turn,
    find_player,
    is_finished,
    is_run_of,
    read_found_state,
    read_step_dir,
)
from uwf_git.commands.turn.branches import find_source
from uwf_git.commands.turn.flow import record_env, tell_cut_short
from uwf_git.commands.turn.turn import (
    Played,
    Player,
    StepFiles,
    Turn,
    find_output_path,
    find_reply_problem,
    list_undeclared,
    refuse_answer,
)
from uwf_git.debug_log import debug
from uwf_git.engine.masking import find_secrets, mask_bytes
from uwf_git.errors import Conflict
from uwf_git.model.text import HINT_PREFIX, find_error_line, first_line
from uwf_git.model.thread import drop_unfit, find_unfit
from uwf_git.store.store import watch_config
from uwf_git.store.threads.history import get_schema
from uwf_git.store.threads.local_files import RunDir
from uwf_git.surroundings import find_above, read_boot_id

# The file in which an agent may leave its meta (``outputFile`` of its role).
#
# It is removed before the agent starts, so what is there later was written by this try.

MAX_BYTES = 1024 * 1024

RUNG = "file"
"""How the meta of a reply from the output file was found."""

FILE = "output-file"
"""The kind of a failed attempt whose agent left something else there, and no fit answer."""


class Report(NamedTuple):
    path: str
    meta: Any
    problem: str | None = None
    """Why that is no fit meta; None: it fits."""

    @property
    def message(self) -> str:
        return f"its outputFile {self.path}: {self.problem}"


def prepare_output_file(turn: Turn) -> None:
    """Remove the output file of an earlier try, and remember the path for this one."""
    try:
        path = find_output_path(turn.snapshot, turn.present, turn.place, turn.asked)
        if path is not None:
            remove_below(turn.workdir, path)
            turn.run_dir.write("output", path)
    except BadFileBelow as error:
        raise NotStarted(
            f"its outputFile {error.message}",
            code="output-file-unusable",
            hint="an outputFile is a path below the work directory; what is there is removed",
        ) from error


def find_report(turn: Turn, secrets: Secrets) -> Report | None:
    """Return what the agent, perhaps still at work, left in its output file, masked, or None."""
    path = turn.run_dir.read("output")
    if not path:
        return None

    def clean(content: bytes) -> bytes:
        return mask_bytes(content, secrets.find_in(content))

    found = read_json_below(turn.workdir, path, most_bytes=MAX_BYTES, clean=clean)
    return found and Report(path, found[0], found[1] or find_meta_problem(turn, found[0]))


def find_meta_problem(turn: Turn, meta: Any) -> str | None:
    schema = get_schema(turn.snapshot, turn.asked.output_schema)
    return find_reply_problem(schema, {"meta": meta})


def read_reply(report: Report, stdout: bytes, protocol: Protocol) -> AgentReply:
    """Return the reply of an agent whose *report* fits; what it printed is the text."""
    try:
        reply = parse_reply(stdout, protocol=protocol, is_free=True)
    except BadReply:
        reply = AgentReply({}, stdout.decode(errors="replace"), "text")
    return reply._replace(meta=report.meta, rung=RUNG)


# End an agent that stays open although it has left its meta in its file: that is its answer.
#
# What it has left is kept beside its run first, so the answer is the same however the agent ends,
# and whichever engine sees it.

_ENDED = b"it has left its report and stays open; it is ended, and that is its answer\n"


def with_end(turn: Turn, listener: Listener, known: tuple[str, ...]) -> Listener:
    """Return *listener* so that an agent that has left its meta is ended once it may be."""

    def is_done() -> bool:
        if turn.run_dir.read("report"):
            # A dead engine was about to end it.
            return True
        if not (turn.may_end() and _keep_report(turn, read_secrets(turn.run_dir, known))):
            return False
        if listener.on_stderr is not None:
            listener.on_stderr(_ENDED)
        return True

    return listener._replace(is_done=is_done)


def _keep_report(turn: Turn, secrets: Secrets) -> bool:
    """Keep what the agent of *turn* has left; return False if nothing there fits."""
    report = find_report(turn, secrets)
    if report is None or report.problem is not None:
        return False
    try:
        turn.run_dir.write("report", json.dumps(report.meta))
    except OSError:
        # A full disk: the agent goes on.
        return False
    return True


def find_kept_report(turn: Turn) -> Report | None:
    """Return what was kept before the agent of *turn* was ended, or None."""
    document = turn.run_dir.read("report")
    with suppress(BadJson):
        return Report(turn.run_dir.read("output"), parse_strict_json(document))
    return None


def read_kept(run: AgentRun, turn: Turn, report: Report) -> Played:
    """Return the answer of an agent that was ended for its *report*, whatever its end."""
    if run.outcome == "interrupted":
        # Ctrl-C came while it was being ended.
        return _leave_in_run(run)
    reply = read_reply(report, run.stdout, turn.agent.payload.get("protocol", "positional"))
    return Played(reply, run.started_ms, run.duration_ms, stdout=run.stdout, stderr=run.stderr)


def _leave_in_run(run: AgentRun) -> Played:
    """Return that Ctrl-C ended the turn, whose answer is kept for the next step."""
    error = {"kind": "interrupted", "message": "it was interrupted"}
    return Played(None, run.started_ms, run.duration_ms, error=error, is_kept=True)


# Wait for an agent whose engine was killed, with the same limits, Ctrl-C and listener.
#
# When `wait_for_orphan` returns, the agent has ended; a daemon that it left behind does not
# count.

_AT_WORK = b"the agent of an interrupted step is still at work; waiting for it\n"

# Only a parent is told of a process's end, so this is polled.
_TICK_S = 0.05
_LOOK_TICKS = 10


def wait_for_orphan(
    run: RunDir, listener: Listener, *, timeout_s: float | None
) -> RunOutcome | None:
    """Wait until an agent has ended; end it at a limit, at Ctrl-C, or if it has done its part.

    *timeout_s* counts from the agent's start. Return why it was ended; None if it ended by itself.
    """
    try:
        if listener.on_stderr is not None:
            listener.on_stderr(_AT_WORK)
        outcome = _watch(run, listener, timeout_s)
    except KeyboardInterrupt:
        outcome = "interrupted"
    debug("VPF38SEH", "orphaned agent ended", run=run.path, outcome=outcome)
    if outcome is not None:
        # A second Ctrl-C kills the agent at once, and the run is still recorded.
        try:
            stop_run(run.path, run.alive, grace_s=DEFAULT_GRACE_S, is_held=run.is_alive)
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):
                stop_run(run.path, run.alive, grace_s=0, is_held=run.is_alive)
    return outcome


def _watch(run: RunDir, listener: Listener, timeout_s: float | None) -> RunOutcome | None:
    deadline = None
    if timeout_s is not None:
        age_s, start_ms = _find_age_s(run), find_run_start_ms(run.path)
        if age_s is None and start_ms is not None:
            # Without a boot's id, or begun by an older uwf.
            age_s = max(0.0, time.time() - start_ms / 1000)
        deadline = time.monotonic() + timeout_s - (age_s or 0.0)
    for tick in count():
        state = read_run_state(run.path, alive_is_held=run.is_alive())
        # The search for who holds the lock may go through all processes.
        if state == "alive" and tick % _LOOK_TICKS == 0:
            state = read_found_state(run, is_held=True)
        if state != "alive":
            break
        listener.on_tick()
        check_cancelled()
        if listener.is_done():
            return "dismissed"
        if _is_over_limit(run):
            return "too-much-output"
        if deadline is not None and time.monotonic() >= deadline:
            return "timed-out"
        time.sleep(_TICK_S)
    return None


def _find_age_s(run: RunDir) -> float | None:
    """Return how long ago the agent began, by the clock of its engine; None after a reboot."""
    with suppress(ValueError):
        boot, begun_s = run.read("clock").split()
        if boot == read_boot_id():
            return max(0.0, time.monotonic() - float(begun_s))
    return None


def _is_over_limit(run: RunDir) -> bool:
    for name, most in ((STDOUT, DEFAULT_MAX_OUTPUT_BYTES), (STDERR, MAX_LOGGED_BYTES)):
        with suppress(FileNotFoundError):
            if os.stat(os.path.join(run.path, name)).st_size > most:
                return True
    return False


# Play a turn by its agent command: run it, or take up an orphaned run, and read the reply.
#
# A run stays in its run directory until the ref has moved, so a killed engine leaves its agent's
# work to the next one.

_ENDED_BY_SIGNAL = 128


def agent_player(
    on_stderr: OnOutput | None, *, on_stdout: OnOutput | None = None, on_tick: OnTick = lambda: None
) -> Player:
    """Return a player of the turn's agent, or of its checks, that passes their masked output on."""
    listener = Listener(on_stderr, on_stdout, on_tick)

    def play(turn: Turn) -> Played:
        return play_agent(turn, listener) if turn.answered is None else run_checks(turn, listener)

    return play


def play_agent(turn: Turn, listener: Listener) -> Played:
    """Run the agent of *turn*, or take up a killed engine's run, and read its reply.

    *listener* receives the output with keys masked, as it is recorded.
    """
    known = find_turn_secrets(turn)
    try:
        with masked_listener(listener, known) as masked:
            run = _run_or_take_up(turn, with_end(turn, masked, known))
        run = run._replace(stderr=cut_to_lines(run.stderr, _max_log_bytes(turn)))
    except (ProgramMissing, SpawnFailed, NotStarted) as error:
        return Played(
            reply=None,
            started_ms=turn.snapshot.commit.time_s * 1000,
            duration_ms=0,
            error={"kind": error.code, "message": error.message},
            hint=error.hint,
        )
    secrets = read_secrets(turn.run_dir, known)
    played = _read_run(run, turn, secrets)
    left = read_step_dir(turn.run_dir.step_dir)
    played = played._replace(
        left=left._replace(usage=played.left.usage or left.usage),
        env=_read_env(turn),
        left_running=run.left_running,
    )
    return _find_usage(turn, mask_played(_explain(turn, run, played), secrets))


def _find_usage(turn: Turn, played: Played) -> Played:
    """Return *played* with the usage of its answer, else of its `failure.json`, else of its trace.

    What does not count is put into the error of a failed turn.
    """
    reply, left, error = played.reply, played.left, played.error
    unfit, usage = find_unfit(left.usage or {}), drop_unfit(left.usage)
    if error is not None and unfit is not None:
        error = {**error, "message": f"{error['message']}; in its usage {unfit}"}
    if not (usage or (reply and drop_unfit(reply.usage))):
        usage = ReportedUsage(turn.run_dir.step_dir).read(is_over=True)
    if reply is not None and not reply.usage:
        reply = reply._replace(usage=usage or None)
    return played._replace(reply=reply, left=left._replace(usage=usage or None), error=error)


def _write_env(turn: Turn, environment: Mapping[str, str]) -> None:
    """Write what recording the run needs of the environment: another engine may record it."""
    keys = find_key_names(turn)
    write_fingerprints(turn.run_dir, find_secrets(environment, keys), mode=private_mode(turn))
    if turn.keep.env:
        turn.run_dir.write("env", json.dumps(record_env(environment, turn.keep.env, keys)))


def _read_env(turn: Turn) -> dict[str, str] | None:
    with suppress(ValueError):
        env = json.loads(turn.run_dir.read("env"))
        return env if isinstance(env, dict) else None
    return None


def _run_or_take_up(turn: Turn, listener: Listener) -> AgentRun:
    run = turn.run_dir
    while True:
        # The agent holds this lock while it lives; None means that an orphaned one does.
        with run.hold_alive() as alive:
            is_alive = read_found_state(run, is_held=alive is None) == "alive"
            _check_same_agent(turn, is_alive=is_alive)
            found = read_run_state(run.path, alive_is_held=is_alive)
            if found in ("finished", "lost"):
                return _read_result(turn)
            if found != "alive":
                request = _request(turn, () if alive is None else (alive,))
                prepare_output_file(turn)
                _write_env(turn, request.environment)
                run.write("clock", f"{read_boot_id()} {time.monotonic()}")
                watch_config(turn.store)
                try:
                    return run_agent(request, listener)
                except AgentInterrupted as interrupt:
                    return interrupt.run
        if not may_be_read(run.path):
            # Not after a wait for what cannot be had: this raises.
            return _read_result(turn)
        outcome = wait_for_orphan(run, listener, timeout_s=find_timeout_s(turn))
        if outcome is not None:
            return _read_result(turn)._replace(outcome=outcome)


def _read_result(turn: Turn) -> AgentRun:
    run = read_run_result(
        turn.run_dir.path,
        max_output_bytes=DEFAULT_MAX_OUTPUT_BYTES,
        max_log_bytes=_max_log_bytes(turn),
    )
    age_s = _find_age_s(turn.run_dir)
    # The times of its files are the wall clock's, which may have been set meanwhile.
    if age_s is not None:
        run = run._replace(duration_ms=int(min(run.duration_ms, age_s * 1000)))
    return run


def _max_log_bytes(turn: Turn) -> int:
    """Return how much of the log is read: what a failed try has always kept, or more."""
    return max(DEFAULT_MAX_LOG_BYTES, turn.keep.log_bytes)


def _check_same_agent(turn: Turn, *, is_alive: bool) -> None:
    """Let only the turn that began a run take it up, and never discard a finished run.

    A step takes up the turn of a run whatever it would choose itself (step/ending.py), so this
    refuses only a choice by hand, and runs that do not name their turn.
    """
    if is_run_of(turn):
        return
    run = turn.run_dir
    other = find_player(run)[1] or "unknown"
    if is_alive:
        raise Conflict(
            f"thread {turn.thread} still has another agent at work: {other}",
            code="other-agent-runs",
            hint="step as before, with the same --agent if there was one, to wait for it and "
            "take its result",
            thread=turn.thread,
            agent=other,
        )
    if is_finished(run):
        raise Conflict(
            f"thread {turn.thread} has unrecorded work of another agent, {other}, in {run.path}",
            code="other-agent-finished",
            hint="read its files there; `rm -r` of the folder gives it up",
            thread=turn.thread,
            agent=other,
            run_dir=run.path,
        )
    run.begin(describe_turn(turn))


def _request(turn: Turn, kept_fds: tuple[int, ...]) -> AgentRequest:
    require_programs(turn)
    payload = turn.agent.payload
    environ = agent_environ(turn)
    path = build_search_path(environ.get("PATH", os.defpath))
    words = build_argv(
        payload["command"],
        protocol=payload.get("protocol", "positional"),
        thread=turn.thread,
        role=turn.role,
    )
    argv = find_above(words, workdir=turn.workdir)
    program = _resolve(turn, argv[0], path)
    return AgentRequest(
        argv=(program, *argv[1:]),
        environment=turn_environment(turn, environ | {"PATH": path}),
        workdir=turn.workdir,
        run_dir=turn.run_dir.path,
        timeout_s=find_timeout_s(turn),
        max_log_bytes=_max_log_bytes(turn),
        kept_fds=kept_fds,
        output_mode=private_mode(turn) & 0o666,
    )


def _resolve(turn: Turn, program: str, path: str) -> str:
    try:
        return resolve_program(program, path=path, workdir=turn.workdir)
    except ProgramMissing:
        # A worktree lacks what git ignores, and what lies above the repository.
        source = find_source(turn.store, turn.snapshot)
        if source is None or "/" not in program:
            raise
        return resolve_program(program, path=path, workdir=source)


def _read_run(run: AgentRun, turn: Turn, secrets: Secrets) -> Played:
    kept = find_kept_report(turn)
    if kept is not None:
        return read_kept(mask_run(run, secrets), turn, kept)
    is_whole, left = run.outcome == "exited", StepFiles()
    if run.exit_code == 0 and (is_whole or run.outcome in {"interrupted", "timed-out"}):
        played = _read_answer(run, turn, secrets)
        if is_whole:
            return played
        # It was told to end, and may have handed in its answer even so.
        if _has_answered(turn, played.reply):
            return played if run.outcome == "timed-out" else _leave_in_run(run)
        left = refuse_answer(played, None).left
    # A message may quote half of a secret, which could not be masked any more.
    masked = mask_run(run, secrets)
    failed = _failed(masked, run.outcome, _describe_end(masked), _last_hint(masked.stderr))
    return failed._replace(left=left)


def _has_answered(turn: Turn, reply: AgentReply | None) -> bool:
    """Check that a reply is no mere beginning: any text of a free role may be one."""
    if reply is None or (reply.form == "text" and reply.rung != RUNG):
        return False
    return find_meta_problem(turn, reply.meta) is None


def _read_answer(run: AgentRun, turn: Turn, secrets: Secrets) -> Played:
    """Return what an agent that ended with status 0 has answered."""
    protocol: Protocol = turn.agent.payload.get("protocol", "positional")
    report = find_report(turn, secrets)
    if report is not None and report.problem is None:
        reply = read_reply(report, run.stdout, protocol)
        return Played(reply, run.started_ms, run.duration_ms, stdout=run.stdout, stderr=run.stderr)
    try:
        reply = _parse(turn, run.stdout, protocol)
        if report is not None and find_meta_problem(turn, reply.meta):
            failed = _failed(mask_run(run, secrets), FILE, report.message, None)
            return refuse_answer(failed._replace(reply=reply), failed.error)
    except BadReply as error:
        masked = mask_run(run, secrets)
        if report is not None:
            return _failed(masked, FILE, report.message, None)
        if masked.stdout != run.stdout:
            error = _describe_masked(masked.stdout, protocol, error.kind)
        path = turn.run_dir.read("output")
        message = f"it left no {path}, and {error.message}" if path else error.message
        return _failed(masked, error.kind, message, error.hint)
    return Played(reply, run.started_ms, run.duration_ms, stdout=run.stdout, stderr=run.stderr)


def _parse(turn: Turn, stdout: bytes, protocol: Protocol) -> AgentReply:
    try:
        return parse_reply(stdout, protocol=protocol, is_free=turn.is_free)
    except BadReply as error:
        bare = parse_reply(stdout, protocol="flags") if error.kind == "no-meta" else None
        if bare is None or not _is_meta(turn, bare.meta):
            raise
        return bare


def _is_meta(turn: Turn, fields: Mapping[str, Any]) -> bool:
    """Check that an object which an agent printed can only be meant as the meta of its role.

    It need not fit the schema: then the error says what does not.
    """
    schema = get_schema(turn.snapshot, turn.asked.output_schema)
    if not isinstance(schema, dict) or not schema.get("required"):
        # Any object would fit.
        return False
    declared = schema.get("properties", {}).keys()
    own = "meta" not in declared and not list_undeclared(schema, fields)
    return own and not fields.keys().isdisjoint({*declared, *schema["required"]})


def _describe_masked(stdout: bytes, protocol: Protocol, kind: BadReplyKind) -> BadReply:
    """Return what is wrong with an output by its masked text, which its message quotes."""
    try:
        parse_reply(stdout, protocol=protocol)
    except BadReply as error:
        return error
    # What was wrong is masked.
    problem = f"the agent's output is not a reply ({kind})"
    return BadReply(kind, problem, stdout.decode(errors="replace"))


def _failed(run: AgentRun, kind: str, message: str, hint: str | None) -> Played:
    return Played(
        reply=None,
        started_ms=run.started_ms,
        duration_ms=run.duration_ms,
        error={"kind": kind, "message": message},
        hint=hint,
        exit_code=run.exit_code,
        stdout=run.stdout,
        stderr=run.stderr,
    )


def _explain(turn: Turn, run: AgentRun, played: Played) -> Played:
    """Put what else is known about a failure into its error."""
    if played.reply is not None or played.is_kept:
        return played
    stopped = turn.run_dir.read_stop_reason()
    if stopped is not None:
        error = {"kind": "interrupted", "message": f"it was stopped: {stopped}"}
        return played._replace(error=error, hint=None, is_stopped=True)
    if run.outcome == "exited" and run.exit_code and played.left.kind is not None:
        return played._replace(error={**(played.error or {}), "kind": played.left.kind})
    if run.outcome == "timed-out":
        # Name the thread's limit if that, and not the agent's own, ended the agent.
        told = tell_cut_short(turn.limited, who="it", own_s=turn.timeout_s)
        if told is None:
            return played
        message, hint = told
        return played._replace(error={**(played.error or {}), "message": message}, hint=hint)
    return played


def _describe_end(run: AgentRun) -> str:
    ended = describe_end(run, "it")
    if ended is not None:
        return ended
    status = run.exit_code or 0
    how = f"exit status {status}"
    if status > _ENDED_BY_SIGNAL:
        how = f"signal {status - _ENDED_BY_SIGNAL} ended it"
    said = find_error_line(run.stderr.decode(errors="replace"))
    return f"{how}: {said}" if said else how


def _last_hint(stderr: bytes) -> str | None:
    """Return the hint that the kit's agents print as their very last line."""
    line = stderr.decode(errors="replace").rstrip().rpartition("\n")[2]
    return (
        first_line(line.removeprefix(HINT_PREFIX))[:300] if line.startswith(HINT_PREFIX) else None
    )
