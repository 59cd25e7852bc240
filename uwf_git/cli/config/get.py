"""`uwf config get`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.admin.config import get_store_setting


@verb("uwf config get agent", exits={1: "it is not set"})
@click.argument("name")
def command(session: Session, name: str) -> None:
    """Print a setting.

    NAME may leave out the `uwf.` in front.
    """
    setting = get_store_setting(session.open_store(create=True), name)
    emit(session, {"name": setting.name, "value": setting.value})
