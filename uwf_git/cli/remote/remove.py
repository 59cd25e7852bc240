"""`uwf remote remove`."""

import click

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.remote_remove import remove


@verb("uwf remote remove backup", exits={1: "there is no such remote"})
@click.argument("name")
def command(session: Session, name: str) -> None:
    """Forget a remote.

    What was taken over from it stays, and so does what is there.
    """
    remote = remove(session.open_store(), name)
    emit(session, {"name": remote.name, "url": remote.shown})
