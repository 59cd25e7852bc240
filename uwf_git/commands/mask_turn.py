"""Masking a turn: what an agent said, without the keys that it was given.

Owns: which parts of a turn are masked. Knows nothing of: what a key looks like (engine/masking.py).
Always true: it happens before anything is checked, recorded or told, so that what is stored is
what was checked; the keys are those in the agent's environment.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from uwf_git.agents.reply import AgentReply
from uwf_git.commands.turn import Left, Played
from uwf_git.engine.masking import find_secrets, mask, mask_bytes, mask_value


def mask_played(played: Played, environ: Mapping[str, str]) -> Played:
    """Give *played* with every key in *environ* masked."""
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


def _mask_left(left: Left, secrets: Sequence[str]) -> Left:
    trace: Any = None if left.trace is None else dict(left.trace)
    usage: Any = None if left.usage is None else dict(left.usage)
    return left._replace(
        prompt=mask(left.prompt, secrets),
        trace=mask_value(trace, secrets),
        usage=mask_value(usage, secrets),
    )
