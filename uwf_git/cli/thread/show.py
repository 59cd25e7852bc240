"""`uwf thread show`."""

import click

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_show import show_thread


@verb("uwf thread show 01J7K9M2", "uwf thread show 01J7K9M2 --full --format text")
@click.argument("thread")
@click.option("--full", is_flag=True, help="Every step, not only the newest.")
def command(session: Session, thread: str, full: bool) -> None:  # noqa: FBT001 (click's way)
    """Show where a thread stands.

    With the newest step, or with --full every one, oldest first.
    """
    emit(session, show_thread(session.open_store(), thread, full=full))
