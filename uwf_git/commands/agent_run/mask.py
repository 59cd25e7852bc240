"""Mask the keys of the agent's environment in its output before it is checked or recorded."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from uwf_git.agents.reply import AgentReply
from uwf_git.agents.request import Listener, OnOutput
from uwf_git.commands.turn.turn import Played, StepFiles
from uwf_git.engine.masking import find_secrets, find_unsettled, mask, mask_bytes, mask_value


def mask_played(played: Played, environ: Mapping[str, str]) -> Played:
    """Return *played* with every key in *environ* masked."""
    secrets = find_secrets(environ)
    if not secrets:
        return played
    return played._replace(
        reply=None if played.reply is None else _mask_reply(played.reply, secrets),
        error=None if played.error is None else mask_value(dict(played.error), secrets),
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
    trace: Any = None if left.trace is None else dict(left.trace)
    usage: Any = None if left.usage is None else dict(left.usage)
    return left._replace(
        prompt=mask(left.prompt, secrets),
        trace=mask_value(trace, secrets),
        usage=mask_value(usage, secrets),
    )


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
