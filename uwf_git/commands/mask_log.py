"""Masking a log: what an agent prints is passed on while it runs, without the keys it was given.

Owns: holding back what may turn out to be a key. Knows nothing of: what a key looks like
(engine/masking.py), who listens.
Always true: nothing else is held back, so that a line which is not ended yet is heard at once; and
wherever a piece ends, a key in the log never passes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from uwf_git.agents.request import Listener, OnOutput
from uwf_git.engine.masking import find_secrets, find_unsettled, mask_bytes


@contextmanager
def masked_listener(listener: Listener, environ: Mapping[str, str]) -> Iterator[Listener]:
    """Give a listener that passes on to *listener* with every key in *environ* masked."""
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
        # Before it is passed on: who fails to hear it has had it all the same.
        held = output[end:]
        if end:
            pass_on(mask_bytes(output[:end], secrets))

    try:
        yield hear
    finally:
        if held:
            pass_on(mask_bytes(held, secrets))
