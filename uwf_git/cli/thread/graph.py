"""`uwf thread graph`."""

from typing import Any

import click

from uwf_git.cli.app.picture import picture_options, print_picture
from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.settings import Session
from uwf_git.commands.inspect.graph import picture_thread


@verb(
    "uwf thread graph 01J7K9M2",
    "uwf thread graph 01J7K9M2 --as svg -o thread.svg",
    exits={1: "there is no such thread, or FILE cannot be written"},
)
@click.argument("thread")
@picture_options
def command(session: Session, thread: str, **how: Any) -> None:
    """Draw the workflow of a thread, and where the thread is in it.

    The picture says how often each role ran, whose turn it is, what failed, and who waits.
    """
    subject = picture_thread(session.open_store(), thread)
    print_picture(session, subject, **how)
