"""Callers: who runs a command, at which terminal, and which signals end it."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from uwf_git.cli.session import FORMAT_VARIABLE, Session
from uwf_git.commands.caller import Caller

# Callers: who runs a command, and at which terminal agents can find that person (UWF_TTY).
#
# Agents run in a session of their own, without a terminal. A terminal is named only while this
# process is in its foreground: two readers would take each other's lines.


def caller_of(session: Session) -> Caller:
    """Return the caller of a command; a format that a person prefers is not passed on to agents."""
    environ = {name: each for name, each in session.environ.items() if name != FORMAT_VARIABLE}
    return Caller(session.now_ms, environ, session.cwd)


VARIABLE = "UWF_TTY"


def terminal_caller(session: Session) -> Caller:
    """Return the caller, with the name of the terminal if there is one."""
    caller = caller_of(session)
    if not (session.stdin_is_tty or session.stdout_is_tty or session.stderr_is_tty):
        return caller
    name = _find_terminal()
    return caller._replace(environ={**caller.environ, VARIABLE: name}) if name else caller


def _find_terminal() -> str | None:
    for descriptor in (0, 2, 1):
        # Not a terminal, or not our controlling one.
        with suppress(OSError, AttributeError):
            if os.tcgetpgrp(descriptor) == os.getpgrp():
                return os.ttyname(descriptor)
    return None


def without_password_prompt(session: Session) -> Caller:
    """Return a caller whose git asks for a password only if a person is at the terminal.

    Otherwise a script would wait for ever. GIT_TERMINAL_PROMPT=0 turns it off at a terminal too.
    """
    caller = caller_of(session)
    if session.can_ask:
        return caller
    return caller._replace(environ={**caller.environ, "GIT_TERMINAL_PROMPT": "0"})


# Treat SIGTERM and SIGHUP as Ctrl-C while an agent runs.
#
# Python would die at once: the agent would go on alone, and its attempt would not be recorded. A
# signal that is ignored (`nohup`) stays ignored; only the main thread handles signals.

_ASKED = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGTERM and SIGHUP."""
    is_main = threading.current_thread() is threading.main_thread()
    mine = [each for each in _ASKED if is_main and signal.getsignal(each) is signal.SIG_DFL]
    for each in mine:
        signal.signal(each, signal.default_int_handler)
    try:
        yield
    finally:
        for each in mine:
            signal.signal(each, signal.SIG_DFL)
