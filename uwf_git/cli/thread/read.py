"""`uwf thread read`."""

import click

from uwf_git.cli.settings import Session
from uwf_git.cli.streams import write_stdout
from uwf_git.cli.verb import verb
from uwf_git.cli.visible import visible_block
from uwf_git.commands.thread_read import read_thread


@verb("uwf thread read 01J7K9M2", "uwf thread read 01J7K9M2 > thread.md")
@click.argument("thread")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N events.")
def command(session: Session, thread: str, last: int | None) -> None:
    """Read what was said in a thread, as text.

    Markdown: the task, then every step with who took it, what it handed in and what it said;
    failed attempts and the end as well.
    """
    write_stdout(visible_block(read_thread(session.open_store(), thread, last=last)))
