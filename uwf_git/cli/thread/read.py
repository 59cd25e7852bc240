"""`uwf thread read`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.counts import Count
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stdout
from uwf_git.commands.inspect.read import render_thread
from uwf_git.model.visible import visible_block

_AT_ONCE = 64 * 1024
"""Characters per write: a long thread is written while it is read."""


@verb("uwf thread read 01J7K9M2", "uwf thread read 01J7K9M2 --logs > thread.md")
@click.argument("thread")
@click.option("--last", type=Count(), metavar="N", help="Only the newest N events.")
@click.option("--logs", is_flag=True, help="With the logs that steps keep (`uwf.keepLogs`).")
def command(session: Session, thread: str, last: int | None, logs: bool) -> None:  # noqa: FBT001 (click passes flags so)
    """Print a thread as readable text.

    Markdown: the task, then every step with its agent, its meta and its text; failed attempts and
    the end as well.
    """
    waiting = ""
    for piece in render_thread(session.open_store(), thread, last=last, logs=logs):
        waiting += visible_block(piece)
        if len(waiting) > _AT_ONCE:
            write_stdout(waiting)
            waiting = ""
    write_stdout(waiting)
