"""Whose terminal: a caller whose agents can find the person that called.

Owns: UWF_TTY. Knows nothing of: who asks there (uwf-human does).
Always true: a terminal is named only while this process is in its foreground: two readers would
take each other's lines. Why at all: agents run in a session of their own, which has none.
"""

import os
from contextlib import suppress

from uwf_git.cli.calling import caller_of
from uwf_git.cli.settings import Session
from uwf_git.commands.caller import Caller

VARIABLE = "UWF_TTY"


def terminal_caller(session: Session) -> Caller:
    """Give who runs a command, with the name of the terminal if it is called from one."""
    caller = caller_of(session)
    if not (session.stdin_is_tty or session.stdout_is_tty or session.stderr_is_tty):
        return caller
    name = _find_terminal()
    return caller._replace(environ={**caller.environ, VARIABLE: name}) if name else caller


def _find_terminal() -> str | None:
    for descriptor in (0, 2, 1):
        # Not a terminal, or not the one that controls us.
        with suppress(OSError, AttributeError):
            if os.tcgetpgrp(descriptor) == os.getpgrp():
                return os.ttyname(descriptor)
    return None
