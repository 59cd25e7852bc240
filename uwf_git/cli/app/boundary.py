"""The boundary: run the command that a program's words name, then what follows a command.

`run` returns an exit status and never raises.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import click

from uwf_git.cli.app.guard import run_guarded
from uwf_git.cli.app.options import explicit_format
from uwf_git.cli.session.settings import FORMAT_VARIABLE, Session, read_session
from uwf_git.cli.session.streams import write_stdout

if TYPE_CHECKING:
    # The store imports dulwich (60 ms), which `--help` and usage errors do not need.
    from uwf_git.store.store import Store


def run(
    group: click.Group,
    words: Sequence[str],
    *,
    prog: str,
    environ: Mapping[str, str],
    session: Session | None = None,
) -> int:
    """Run the command that *words* name, and return the exit status of the process.

    *session* replaces the one read from *environ*: tests bring their own clock and ids.
    """
    opened: list[Store] = []

    def invoke() -> int:
        given = (session or read_session(environ))._replace(opened=opened, held=held)
        return _invoke(group, words, prog=prog, session=given)

    def as_json() -> bool:
        return (explicit_format(words) or environ.get(FORMAT_VARIABLE)) == "json"

    with ExitStack() as held:
        status = run_guarded(invoke, environ=environ, as_json=as_json)
    if opened:
        # Also after a failure: an attempt is a transition. Nothing here changes the exit status.
        run_guarded(lambda: _follow_up(opened, environ), environ=environ, as_json=as_json)
    return status


def _follow_up(opened: "list[Store]", environ: Mapping[str, str]) -> int:
    from uwf_git.cli.app.follow_up import follow_up_noted  # noqa: PLC0415 (not for `--help`)

    # Ctrl-C ends the listener; the command is done.
    with suppress(KeyboardInterrupt):
        for store in opened:
            follow_up_noted(store, environ)
    return 0


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
    """Answer the shell's completion request; any failure is silent, since the user is typing."""
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
