"""Page what a command prints at a terminal; elsewhere nothing changes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import ReaderGone
from uwf_git.store.store import Store


@contextmanager
def paged(session: Session, store: Store) -> Iterator[Session]:
    """Yield a session whose standard output is the user's pager, if a person reads it.

    A person who leaves the pager early has read enough: the block ends, without an error.
    """
    if not session.is_screen:
        yield session
        return
    from uwf_git.agents.pager import choose_pager, run_pager  # noqa: PLC0415 (only at a terminal)

    # Not what the store's own config says: an agent may have written it.
    command = choose_pager(session.environ, store.user_config.get("core.pager"))
    if command is None:
        yield session
        return
    # The pager's input has no width.
    environ = {**session.environ, "COLUMNS": str(session.text_width() or 80)}
    with (
        run_pager(command, session.environ) as into,
        suppress(ReaderGone),
        _redirected(into, with_stderr=session.stderr_is_tty),
    ):
        yield session._replace(environ=environ)


@contextmanager
def _redirected(into: int, *, with_stderr: bool) -> Iterator[None]:
    """Let the descriptor *into* be standard output, and standard error as well if asked."""
    streams = [sys.stdout, sys.stderr] if with_stderr else [sys.stdout]
    ours = [(stream, stream.fileno(), os.dup(stream.fileno())) for stream in streams]
    try:
        for stream, number, _saved in ours:
            stream.flush()
            os.dup2(into, number)
        yield
    finally:
        for stream, number, saved in ours:
            with suppress(OSError, ValueError):
                stream.flush()
            os.dup2(saved, number)
            os.close(saved)
