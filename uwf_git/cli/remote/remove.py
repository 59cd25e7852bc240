"""`uwf remote remove`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.remote.remotes import remove_remote


@verb("uwf remote remove backup", exits={1: "there is no such remote"})
@click.argument("name")
def command(session: Session, name: str) -> None:
    """Remove a remote.

    What was fetched from it stays here, and the remote itself is not changed.
    """
    remote = remove_remote(session.open_store(), name)
    emit(session, {"name": remote.name, "url": remote.shown})
