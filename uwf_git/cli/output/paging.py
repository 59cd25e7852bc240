"""Page what a command prints at a terminal; elsewhere nothing changes."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from uwf_git.agents.terminal import choose_pager, run_pager
from uwf_git.cli.session import ReaderGone, Session, stdout_is_utf8, write_stdout
from uwf_git.engine.picture.draw import DEFAULT_WIDTH, FORMS, draw
from uwf_git.engine.picture.plan import Subject
from uwf_git.errors import Refused
from uwf_git.store.durable import replace_file
from uwf_git.store.store import Store


@contextmanager
def paged(session: Session, store: Store) -> Iterator[Session]:
    """Yield a session whose standard output is the user's pager, if a person reads it.

    A person who leaves the pager early has read enough: the block ends, without an error.
    """
    command = None
    if session.is_screen:
        # Not what the store's own config says: an agent may have written it.
        command = choose_pager(session.environ, store.user_config.get("core.pager"))
    if command is None:
        yield session
        return
    # The pager's input has no width.
    environ = {**session.environ, "COLUMNS": str(session.text_width() or 80)}
    # With LC_ALL=C less takes what Python writes for bytes.
    charset = {"LESSCHARSET": "utf-8"} if stdout_is_utf8() else {}
    with (
        run_pager(command, {**charset, **session.environ}) as into,
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


# The options of the verbs that draw, and what becomes of a picture.


_ASCII = str.maketrans("│├└─║╠╚═↺↓→▶✓✗‖·…“”\u00d7", '|+`-#++=^v>>+!=.~""x')
"""The signs of an outline; its marks as in `screen.py`."""

output_option = click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write it to FILE, whole or not at all, instead of printing it.",
)


def picture_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--as`, `-o` and `--whole` to a verb, the keywords of ``print_picture``."""
    form = click.option(
        "--as",
        "form",
        type=click.Choice(FORMS),
        default="text",
        show_default=True,
        help="Which picture: an outline, a drawing, or the source for another program.",
    )
    whole = click.option(
        "--whole", is_flag=True, help="Every branch, also where more than twelve are alike."
    )
    return form(output_option(whole(function)))


def print_picture(
    session: Session, subject: Subject, *, form: str, output: str | None, whole: bool
) -> None:
    """Print the picture of *subject*, or write it to the file *output*; `-` is standard output."""
    if output is not None and output != "-":
        picture = draw(subject, form, is_whole=whole)
        write_file(os.path.join(session.cwd, output), picture.encode())
        return
    picture = draw(subject, form, width=session.text_width() or DEFAULT_WIDTH, is_whole=whole)
    if form == "text" and not stdout_is_utf8():
        picture = picture.translate(_ASCII)
    elif form == "svg" and not stdout_is_utf8():
        picture = picture.encode("ascii", "xmlcharrefreplace").decode()
    write_stdout(picture)


def write_file(path: str, content: bytes) -> None:
    """Write *content* to *path*, whole or not at all."""
    try:
        old = os.stat(path) if os.path.exists(path) else None
        if old is not None and not stat.S_ISREG(old.st_mode):
            # A pipe or a device cannot be replaced, and a folder is an error.
            with open(path, "wb") as file:
                file.write(content)
            return
        # A link stays a link; a missing folder is not made.
        real = os.path.realpath(path)
        os.stat(os.path.dirname(real))
        # Who may read it was chosen before.
        replace_file(real, content, like=old)
    except OSError as error:
        raise Refused(
            f"{path} cannot be written: {error.strerror or error}",
            code="output-unwritten",
            hint="name a file in a folder that exists, or leave -o out",
            path=path,
        ) from error
