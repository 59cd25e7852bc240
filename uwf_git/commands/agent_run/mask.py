"""Mask the secrets of the agent's environment in its output before it is checked or recorded.

An engine that takes up another engine's run may not have that environment: it finds the secrets by
the fingerprints that lie beside the run.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from uwf_git.agents.reply import AgentReply
from uwf_git.agents.request import AgentRun, Listener, OnOutput
from uwf_git.commands.turn.turn import Played, StepFiles
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
from uwf_git.store.threads.run_dir import RunDir

# Fewer characters of a secret are the end of many texts, and tell nothing.
_TELLING = 4


class Secrets(NamedTuple):
    known: tuple[str, ...]

    others: Fingerprints | None = None
    """Fingerprints of secrets that this process does not know."""

    def find_in(self, value: Any) -> tuple[str, ...]:
        if self.others is None:
            return self.known
        data = b"\0".join(_walk_texts(value))
        return (*self.known, *find_secrets_in(data, self.others))


def write_fingerprints(run: RunDir, environ: Mapping[str, str]) -> None:
    secrets = find_secrets(environ)
    if secrets:
        run.write("prints", format_fingerprints(take_fingerprints(secrets, os.urandom(SALT_BYTES))))


def read_secrets(run: RunDir, environ: Mapping[str, str]) -> Secrets:
    known = find_secrets(environ)
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
    return played._replace(
        reply=None if played.reply is None else _mask_reply(played.reply, secrets),
        error=None if played.error is None else _mask_fields(played.error, secrets),
        hint=None if played.hint is None else mask(played.hint, secrets),
        stdout=mask_bytes(played.stdout, secrets),
        stderr=mask_bytes(played.stderr, secrets),
        left=_mask_left(played.left, secrets),
    )


def _mask_reply(reply: AgentReply, secrets: Sequence[str]) -> AgentReply:
    return reply._replace(
        meta=mask_value(reply.meta, secrets),
        content=mask(reply.content, secrets),
        raw=None if reply.raw is None else mask_bytes(reply.raw, secrets),
        usage=mask_value(reply.usage, secrets),
        state=mask_value(reply.state, secrets),
        session=None if reply.session is None else mask(reply.session, secrets),
        rung=None if reply.rung is None else mask(reply.rung, secrets),
    )


def _mask_left(left: StepFiles, secrets: Sequence[str]) -> StepFiles:
    usage: Any = None if left.usage is None else dict(left.usage)
    return left._replace(
        prompt=mask(left.prompt, secrets),
        trace=None if left.trace is None else _mask_fields(left.trace, secrets),
        usage=mask_value(usage, secrets),
    )


def _mask_fields(fields: Mapping[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    """Mask the values of a node's fields; their names are the format's, not the agent's."""
    return {name: mask_value(each, secrets) for name, each in fields.items()}


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
def masked_listener(listener: Listener, environ: Mapping[str, str]) -> Iterator[Listener]:
    """Yield a listener that passes output to *listener* with every key in *environ* masked."""
    secrets = find_secrets(environ)
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
