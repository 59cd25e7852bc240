"""`uwf thread read`."""

from collections.abc import Iterator
from itertools import chain

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.paging import paged
from uwf_git.cli.output.screen import Screen, screen_of
from uwf_git.cli.output.table import Count
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import stdout_is_utf8, write_stdout
from uwf_git.commands.inspect.read import render_thread
from uwf_git.model.text import visible_block

_AT_ONCE = 64 * 1024
"""Characters per write: a long thread is written while it is read."""


@verb("uwf thread read 01J7K9M2", "uwf thread read 01J7K9M2 --logs > thread.md")
@click.argument("thread")
@click.option("--last", type=Count(), metavar="N", help="Only the newest N events.")
@click.option("--logs", is_flag=True, help="With the logs that steps keep (`uwf.keepLogs`).")
@click.option("--raw", is_flag=True, help="At a terminal too, print Markdown as it is.")
def command(session: Session, *, thread: str, last: int | None, logs: bool, raw: bool) -> None:
    """Print a thread as readable text.

    Markdown: the task, then every step with its agent, its meta and its text; failed attempts and
    the end as well. At a terminal it is shown as it is meant, in the pager that git uses.
    """
    store = session.open_store()
    is_shown = session.is_screen and stdout_is_utf8() and not raw
    tell_time = screen_of(session).tell_moment if is_shown else None
    pieces = render_thread(store, thread, last=last, logs=logs, tell_time=tell_time)
    # What is wrong with the thread is said before the pager has the terminal.
    first = next(pieces, "")
    with paged(session, store) as reader:
        pieces = (visible_block(piece) for piece in chain([first], pieces))
        if is_shown:
            pieces = _show(pieces, screen_of(reader))
        _write(pieces)


def _show(pieces: Iterator[str], screen: Screen) -> Iterator[str]:
    """Yield each piece, which is whole Markdown, as lines for the screen."""
    from uwf_git.cli.output.markdown_screen import (  # noqa: PLC0415 (rich takes 60 ms)
        render_markdown,
    )

    for number, piece in enumerate(pieces):
        yield ("\n" if number else "") + render_markdown(piece, screen)


def _write(pieces: Iterator[str]) -> None:
    waiting = ""
    for piece in pieces:
        waiting += piece
        if len(waiting) > _AT_ONCE:
            write_stdout(waiting)
            waiting = ""
    write_stdout(waiting)
