"""Mask the secrets of the agent's environment in its output before it is checked or recorded.

An engine that takes up another engine's run may not have that environment: it finds the secrets by
the fingerprints that lie beside the run.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from uwf_git.agents.command_line import AgentRun, Listener, OnOutput
from uwf_git.commands.turn.turn import Played
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
from uwf_git.store.threads.local_files import RunDir

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
