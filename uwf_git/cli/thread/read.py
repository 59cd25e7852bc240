"""`uwf thread read`."""

import click

from uwf_git.cli.counts import Count
from uwf_git.cli.settings import Session
from uwf_git.cli.streams import write_stdout
from uwf_git.cli.verb import verb
from uwf_git.cli.visible import visible_block
from uwf_git.commands.thread_read import tell_thread

_AT_ONCE = 64 * 1024
"""Characters: a long thread is written as it is read, and each write costs."""


@verb("uwf thread read 01J7K9M2", "uwf thread read 01J7K9M2 > thread.md")
@click.argument("thread")
@click.option("--last", type=Count(), metavar="N", help="Only the newest N events.")
def command(session: Session, thread: str, last: int | None) -> None:
    """Read what was said in a thread, as text.

    Markdown: the task, then every step with who took it, what it handed in and what it said;
    failed attempts and the end as well.
    """
    waiting = ""
    for piece in tell_thread(session.open_store(), thread, last=last):
        waiting += visible_block(piece)
        if len(waiting) > _AT_ONCE:
            write_stdout(waiting)
            waiting = ""
    write_stdout(waiting)
