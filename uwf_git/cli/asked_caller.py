"""Who may be asked: a caller for commands that may need a password.

Owns: that git asks for one only where somebody can answer. Knows nothing of: who needs one.
"""

from uwf_git.cli.calling import caller_of
from uwf_git.cli.settings import Session
from uwf_git.commands.caller import Caller


def asked_caller(session: Session) -> Caller:
    """Give who runs a command; git asks for a password only if that is a person at a terminal.

    Otherwise a script would wait for ever. GIT_TERMINAL_PROMPT=0 says so at a terminal too.
    """
    caller = caller_of(session)
    if session.stdin_is_tty and session.stderr_is_tty:
        return caller
    return caller._replace(environ={**caller.environ, "GIT_TERMINAL_PROMPT": "0"})
