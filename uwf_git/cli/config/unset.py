"""`uwf config unset`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.admin.config import unset_setting


@verb("uwf config unset agent", exits={1: "it is not set in this store"})
@click.argument("name")
def command(session: Session, name: str) -> None:
    """Remove a setting.

    From this store's git config; the value that counts then is printed: the one of your own git
    config, or none.
    """
    setting = unset_setting(session.open_store(create=True), name)
    emit(session, {"name": setting.name, "value": setting.value})
