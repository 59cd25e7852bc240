"""What an agent said, before it counts: its secrets are masked, the checks of its role are run."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any, NamedTuple

from uwf_git.agents.command_line import (
    DEFAULT_GRACE_S,
    DEFAULT_MAX_OUTPUT_BYTES,
    MAX_LOGGED_BYTES,
    AgentRequest,
    AgentRun,
    Listener,
    OnOutput,
    ProgramMissing,
    agent_name,
    build_search_path,
    resolve_program,
    split_command,
)
from uwf_git.agents.process import AgentInterrupted, SpawnFailed, WorkdirMissing, run_agent
from uwf_git.agents.run_files import stop_run
from uwf_git.commands.agent_run.runs import is_left
from uwf_git.commands.turn.flow import tell_cut_short
from uwf_git.commands.turn.turn import Played, Turn, refuse_answer
from uwf_git.debug_log import debug
from uwf_git.engine.masking import (
    SALT_BYTES,
    Fingerprints,
    find_secrets,
    find_secrets_in,
    find_unsettled,
    format_fingerprints,
    mask,
    mask_bytes,
    mask_value,
    parse_fingerprints,
    take_fingerprints,
)
from uwf_git.errors import AgentFailed
from uwf_git.model.limits import find_time_left_s
from uwf_git.model.text import CHECK, find_error_line, plain_key, write_section
from uwf_git.store.durable import replace_file
from uwf_git.store.git.config import is_shared
from uwf_git.store.threads.local_files import RunDir
from uwf_git.surroundings import find_above, without_local_variables

# Mask the secrets of the agent's environment in its output before it is checked or recorded.
#
# An engine that takes up another engine's run may not have that environment: it finds the secrets
# by the fingerprints that lie beside the run.

# As in `uwf-llm --key-env NAME` and `env UWF_LLM_KEY_ENV=NAME uwf-llm`, quoted or not.
_KEY_OPTION = re.compile(r"(?i)key[-_]?env['\"\\=\s]+(\w+)")

# Fewer characters of a secret are the end of many texts, and tell nothing.
_TELLING = 4


class Secrets(NamedTuple):
    known: tuple[str, ...]

    others: Fingerprints | None = None
    """Fingerprints of secrets that this process does not know."""

    def find_in(self, value: Any) -> tuple[str, ...]:
        if self.others is None:
            return self.known
        return (*self.known, *find_secrets_in(b"\0".join(_walk_texts(value)), self.others))


def find_key_names(turn: Turn) -> frozenset[str]:
    """Return the variables that adapters read keys from by a setting (``keyEnv``), of any name."""
    settings = turn.store.config.values.items()
    named = (values for name, values in settings if plain_key(name).endswith(".keyenv"))
    environ = agent_environ(turn).items()
    typed = (value.strip() for name, value in environ if plain_key(name).endswith("keyenv"))
    return frozenset(chain(*named, typed, _KEY_OPTION.findall(turn.agent.payload["command"])))


def find_turn_secrets(turn: Turn) -> tuple[str, ...]:
    return find_secrets(agent_environ(turn), find_key_names(turn))


def write_fingerprints(run: RunDir, secrets: Sequence[str], *, mode: int = 0o600) -> None:
    if secrets:
        prints = take_fingerprints(secrets, os.urandom(SALT_BYTES))
        run.write("prints", format_fingerprints(prints), mode=mode & 0o666)


def read_secrets(run: RunDir, known: tuple[str, ...]) -> Secrets:
    document = run.read("prints")
    try:
        others = parse_fingerprints(document).without(known) if document else None
    except (ValueError, KeyError, TypeError):
        # Of another version.
        others = None
    return Secrets(known, others if others and others.prints else None)


def mask_run(run: AgentRun, secrets: Secrets) -> AgentRun:
    found = secrets.find_in((run.stdout, run.stderr))
    stdout, stderr = run.stdout, run.stderr
    if run.outcome != "exited":
        stdout, stderr = _without_half(stdout, found), _without_half(stderr, found)
    return run._replace(stdout=mask_bytes(stdout, found), stderr=mask_bytes(stderr, found))


def _without_half(output: bytes, secrets: Sequence[str]) -> bytes:
    """Return an output that was cut off, by a limit or a signal, without half a secret."""
    end = find_unsettled(output, secrets)
    return output[:end] if len(output) - end >= _TELLING else output


def mask_played(played: Played, known: Secrets) -> Played:
    secrets = known.find_in(played)
    if not secrets:
        return played
    reply, left = played.reply, played.left
    if reply is not None:
        texts = ("meta", "content", "usage", "state", "session", "rung")
        masked = {name: mask_value(getattr(reply, name), secrets) for name in texts}
        raw = None if reply.raw is None else mask_bytes(reply.raw, secrets)
        reply = reply._replace(**masked, raw=raw)
    left = left._replace(
        prompt=mask(left.prompt, secrets),
        trace=_mask_fields(left.trace, secrets),
        usage=mask_value(left.usage and dict(left.usage), secrets),
    )
    return played._replace(
        reply=reply,
        error=_mask_fields(played.error, secrets),
        hint=mask_value(played.hint, secrets),
        stdout=mask_bytes(played.stdout, secrets),
        stderr=mask_bytes(played.stderr, secrets),
        left=left,
    )


def _mask_fields(fields: Mapping[str, Any] | None, secrets: Sequence[str]) -> dict[str, Any] | None:
    """Mask the values of a node's fields; their names are the format's, not the agent's."""
    return (
        fields if fields is None else {name: mask_value(fields[name], secrets) for name in fields}
    )


def _walk_texts(value: Any) -> Iterator[bytes]:
    """Yield all texts in a value, and the keys of its objects."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, str):
        yield value.encode(errors="replace")
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _walk_texts(name)
            yield from _walk_texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _walk_texts(each)


@contextmanager
def masked_listener(listener: Listener, secrets: Sequence[str]) -> Iterator[Listener]:
    """Yield a listener that passes output to *listener* with *secrets* masked."""
    if not secrets:
        yield listener
        return
    with ExitStack() as stack:

        def mask(hear: OnOutput | None) -> OnOutput | None:
            return hear and stack.enter_context(_masked(hear, secrets))

        yield listener._replace(
            on_stderr=mask(listener.on_stderr), on_stdout=mask(listener.on_stdout)
        )


@contextmanager
def _masked(pass_on: OnOutput, secrets: Sequence[str]) -> Iterator[OnOutput]:
    held = b""

    def hear(piece: bytes) -> None:
        nonlocal held
        output = held + piece
        end = find_unsettled(output, secrets)
        # Set first, so that a piece is not passed on twice if the listener raises.
        held = output[end:]
        if end:
            pass_on(mask_bytes(output[:end], secrets))

    try:
        yield hear
    finally:
        if held:
            pass_on(mask_bytes(held, secrets))


# What every process of a turn is given: the agent's process and the processes of the role's checks.


def agent_environ(turn: Turn) -> dict[str, str]:
    # Its work directory says which repository it works on; git's hooks and aliases name another.
    inherited = without_local_variables(turn.environ, keep_settings=True)
    return {**inherited, **turn.agent.payload.get("env", {})}


def turn_environment(turn: Turn, environ: Mapping[str, str]) -> dict[str, str]:
    """Return *environ* with what it says of the turn; make the step directory."""
    step_dir = _make_step_dir(turn)
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


def _make_step_dir(turn: Turn) -> str:
    path = turn.run_dir.step_dir
    if os.path.islink(path):
        os.unlink(path)
    os.makedirs(path, mode=private_mode(turn), exist_ok=True)
    return path


def private_mode(turn: Turn) -> int:
    """Return the mode of what is not masked; who shares the store clears up after a kill."""
    return 0o770 if is_shared(turn.store.config) else 0o700


def find_timeout_s(turn: Turn, *, spent_ms: int = 0) -> float | None:
    """Return how long a process may take: the turn's own limit, or what the thread has left.

    *spent_ms* of the thread's time are gone already in this turn.
    """
    left_s = find_time_left_s(turn.limited.present, spent_ms=spent_ms)
    return min((each for each in (turn.timeout_s, left_s) if each is not None), default=None)


def describe_end(run: AgentRun, who: str) -> str | None:
    """Return what ended the process of *who*; None: it has ended by itself, with a status."""
    if run.outcome == "timed-out":
        return f"{who} exceeded its time limit and was stopped after {run.duration_ms / 1000:.1f} s"
    if run.outcome == "too-much-output":
        most = f"{DEFAULT_MAX_OUTPUT_BYTES // 2**20} MiB"
        logged = f"logged more than {MAX_LOGGED_BYTES // 2**30} GiB"
        return f"{who} printed more than {most}, or {logged}, and was stopped"
    if run.outcome == "interrupted":
        return f"{who} was interrupted"
    if run.outcome == "lost" or run.exit_code is None:
        return f"{who} was killed before it reported an exit status"
    return None


# Run the checks of a role on an answer that fits its schema, before the answer is recorded.
#
# A check is a command in the work directory; its exit status decides. Of a dead engine nothing is
# believed: what it left running is ended, and all checks run again.

REPLY = "reply.json"
REPLY_VARIABLE = "UWF_REPLY"

_INTERRUPTED = "interrupted"
_MAX_LOG_BYTES = 1024 * 1024
# Also in base64 and hexadecimal.
_LONGEST_SECRET = 16 * 1024


class NotStarted(AgentFailed):
    """The turn would fail, so its agent was not started."""


def require_programs(turn: Turn) -> None:
    """Check that the programs of checks exist before the agent is paid.

    A program that is a path may be what the agent is to make.
    """
    path = _search_path(turn)
    for command in turn.asked.checks:
        program = split_command(command)[0]
        try:
            if "/" not in program:
                resolve_program(program, path=path, workdir=turn.workdir)
        except ProgramMissing as missing:
            raise NotStarted(
                f"its answer would be checked: {missing.message}",
                code="check-program-missing",
                hint=missing.hint,
            ) from missing


def run_checks(turn: Turn, listener: Listener) -> Played:
    """Return what the agent of *turn* answered, with the output of the checks in its log.

    If a check fails, return a failed turn instead; the checks after it do not run. If a check is
    stopped or interrupted, the answer stays in the run directory, and all checks run again at the
    next step. *listener* receives their output, with keys masked.
    """
    played = turn.answered
    if played is None or played.reply is None:
        raise ValueError("there is no answer to check")  # a bug of the caller
    # Those that an engine which died left running.
    for check in turn.run_dir.list_checks():
        stop_run(check.path, check.alive, grace_s=DEFAULT_GRACE_S, is_held=check.is_alive)
    _make_step_dir(turn)
    document = {"role": turn.role, "meta": played.reply.meta, "content": played.reply.content}
    content = json.dumps(document, ensure_ascii=False).encode(errors="replace")
    replace_file(_reply_path(turn), content + b"\n", durable=False)
    known = find_turn_secrets(turn)
    secrets = read_secrets(turn.run_dir, known)
    with masked_listener(listener, known) as masked:
        for number, command in enumerate(turn.asked.checks):
            check = turn.run_dir.get_check(number)
            done = _run_check(turn, (check, command), masked, secrets, spent_ms=played.duration_ms)
            debug("Q0T4X7HC", "check ended", command=command, error=done.error)
            played = played._replace(
                stderr=played.stderr + write_section(command, done.stderr),
                duration_ms=played.duration_ms + done.duration_ms,
            )
            if done.error is not None:
                is_kept = done.error["kind"] == _INTERRUPTED and is_left(turn.run_dir)
                return _refused(played, done)._replace(is_kept=is_kept)
    return played


def leave_unchecked(played: Played, why: str) -> Played:
    """Return an answer that nobody can check any more, as an interrupted turn."""
    error = {"kind": _INTERRUPTED, "message": f"its checks did not run: {why}"}
    return _refused(played, Played(None, 0, 0, error))


def _refused(played: Played, done: Played) -> Played:
    refused = refuse_answer(played, done.error)
    return refused._replace(hint=done.hint, exit_code=done.exit_code, is_stopped=done.is_stopped)


def _reply_path(turn: Turn) -> str:
    return os.path.join(turn.run_dir.step_dir, REPLY)


def _run_check(
    turn: Turn, check: tuple[RunDir, str], listener: Listener, secrets: Secrets, *, spent_ms: int
) -> Played:
    """Return how a check went, its log as ``stderr``; without an error it has succeeded."""
    run_dir, command = check
    os.makedirs(os.path.dirname(run_dir.path), exist_ok=True)
    run_dir.begin(f"{turn.role} {turn.agent.hash} {agent_name(command)}\n")
    write_fingerprints(run_dir, secrets.known, mode=private_mode(turn))
    try:
        with run_dir.hold_alive() as alive:
            kept = () if alive is None else (alive,)
            run = run_agent(_request(turn, check, kept, spent_ms), listener)
    except AgentInterrupted as interrupt:
        run = interrupt.run
    except (ProgramMissing, SpawnFailed, WorkdirMissing) as failure:
        return Played(None, 0, 0, {"kind": CHECK, "message": failure.message})
    log = cut_to_lines(run.stderr, _MAX_LOG_BYTES)
    log = mask_bytes(log, secrets.find_in(log))
    error, hint = _find_error(run, command, log), None
    stopped = run_dir.read_stop_reason() if error is not None else None
    if stopped is not None:
        error = {"kind": _INTERRUPTED, "message": f"its check was stopped: {stopped}"}
    elif error is not None and run.outcome == "timed-out":
        who = f"its check {agent_name(command)}"
        told = tell_cut_short(turn.limited, who=who, own_s=turn.timeout_s, spent_ms=spent_ms)
        error["message"], hint = told or (error["message"], None)
    ended = Played(None, run.started_ms, run.duration_ms, error, hint, run.exit_code, stderr=log)
    return ended._replace(is_stopped=stopped is not None)


def _request(
    turn: Turn, check: tuple[RunDir, str], kept_fds: tuple[int, ...], spent_ms: int
) -> AgentRequest:
    run_dir, command = check
    path = _search_path(turn)
    argv = find_above(split_command(command), workdir=turn.workdir)
    program = resolve_program(argv[0], path=path, workdir=turn.workdir)
    return AgentRequest(
        argv=(program, *argv[1:]),
        environment={
            **turn_environment(turn, agent_environ(turn) | {"PATH": path}),
            REPLY_VARIABLE: _reply_path(turn),
        },
        workdir=turn.workdir,
        run_dir=run_dir.path,
        timeout_s=find_timeout_s(turn, spent_ms=spent_ms),
        max_log_bytes=_MAX_LOG_BYTES,
        kept_fds=kept_fds,
        output_mode=private_mode(turn) & 0o666,
        is_all_log=True,
    )


def _search_path(turn: Turn) -> str:
    return build_search_path(agent_environ(turn).get("PATH", os.defpath))


def cut_to_lines(log: bytes, most_bytes: int) -> bytes:
    """Return a log without its first line if that was cut: half a secret could not be masked.

    Of a line that is longer than a secret only the beginning is left out.
    """
    if len(log) < most_bytes:
        return log
    return log[log.find(b"\n", 0, _LONGEST_SECRET) + 1 or _LONGEST_SECRET :]


def _find_error(run: AgentRun, command: str, log: bytes) -> dict[str, str] | None:
    """Return why a check refuses the answer; None: it has succeeded."""
    if run.outcome == "exited" and run.exit_code == 0:
        return None
    name = agent_name(command)
    ended = describe_end(run, f"its check {name}")
    said = find_error_line(log.decode(errors="replace")) or f"{name}: exit status {run.exit_code}"
    kind = _INTERRUPTED if run.outcome == "interrupted" else CHECK
    return {"kind": kind, "message": ended or said}
