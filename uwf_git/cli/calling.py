"""Calling: a session as what commands take.

Owns: the step from the command line's values to a command's. Knows nothing of: any command.
"""

from uwf_git.cli.settings import Session
from uwf_git.commands.caller import Caller


def caller_of(session: Session) -> Caller:
    """Give who runs a command, as commands want it."""
    return Caller(session.now_ms, session.environ, session.cwd)
