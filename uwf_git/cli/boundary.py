"""The boundary: where every exception ends, as words on standard error and an exit status.

Owns: running a program from its words to its exit status.
Knows nothing of: any command; how a failure is described or told.
Always true: `run` returns, and nobody sees a traceback.
"""

import sys
from collections.abc import Mapping, Sequence

import click

from uwf_git.cli.failure import describe
from uwf_git.cli.options import explicit_format
from uwf_git.cli.report import tell
from uwf_git.cli.settings import Session, read_session
from uwf_git.cli.streams import ReaderGone, hold_standard_streams, write_stdout

READER_GONE = 141
"""What a shell shows for git, and for every filter, when a broken pipe ended it: 128 + SIGPIPE."""

_FRAMES = 5000


def run(
    group: click.Group,
    words: Sequence[str],
    *,
    prog: str,
    environ: Mapping[str, str],
    session: Session | None = None,
) -> int:
    """Run the command that *words* name, and give the exit status of the process.

    *session* replaces the one read from *environ*: tests bring their own clock and ids.
    """
    hold_standard_streams()
    _let_documents_nest()
    try:
        return _invoke(group, words, prog=prog, session=session or read_session(environ))
    except ReaderGone:
        return READER_GONE
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 (this is the boundary)
        failure = describe(error, environ)
        tell(failure, as_json=explicit_format(words) == "json")
        return failure.exit_status


def _let_documents_nest() -> None:
    """Make room for values as deep as nodes may hold: reading and printing takes frames a level."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))


def _invoke(group: click.Group, words: Sequence[str], *, prog: str, session: Session) -> int:
    variable = f"_{prog.replace('-', '_').upper()}_COMPLETE"
    if question := session.environ.get(variable):
        return _complete(group, session, prog=prog, asked=(variable, question))
    try:
        with group.make_context(prog, list(words), obj=session) as context:
            group.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    return 0


def _complete(group: click.Group, session: Session, *, prog: str, asked: tuple[str, str]) -> int:
    """Answer the shell, which asks while somebody is typing: whatever fails, fail silently."""
    from click.shell_completion import (  # noqa: PLC0415 (only the shell's question needs it)
        get_completion_class,
    )

    variable, question = asked
    shell, _, what = question.partition("_")
    made = get_completion_class(shell)
    if made is None or what != "complete":
        return 1
    try:
        answer = made(group, {"obj": session}, prog, variable).complete()
    except Exception:  # noqa: BLE001 (see the docstring)
        return 1
    write_stdout(answer + "\n")
    return 0
