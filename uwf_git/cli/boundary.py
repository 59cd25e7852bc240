"""The boundary: from a program's words to its exit status.

Owns: running a group of commands, telling of what they did when they are done, and answering the
shell that completes its words.
Knows nothing of: any command; what becomes of a failure (guard.py).
Always true: `run` returns, and nobody sees a traceback.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from uwf_git.cli.guard import run_guarded
from uwf_git.cli.options import explicit_format
from uwf_git.cli.settings import Session, read_session
from uwf_git.cli.streams import write_stdout

if TYPE_CHECKING:
    # It costs dulwich, 60 ms, which `--help` and usage errors must not pay.
    from uwf_git.store.store import Store


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
    opened: list[Store] = []

    def invoke() -> int:
        given = (session or read_session(environ))._replace(opened=opened)
        return _invoke(group, words, prog=prog, session=given)

    def as_json() -> bool:
        return explicit_format(words) == "json"

    status = run_guarded(invoke, environ=environ, as_json=as_json)
    if opened:
        # Also of what a command did that failed: an attempt is a transition. It is done by now, so
        # nothing here changes its status.
        run_guarded(lambda: _tell(opened, environ), environ=environ, as_json=as_json)
    return status


def _tell(opened: "list[Store]", environ: Mapping[str, str]) -> int:
    from uwf_git.cli.on_event import tell_of_opened  # noqa: PLC0415 (not for `--help`)

    tell_of_opened(opened, environ)
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
