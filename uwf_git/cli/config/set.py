"""`uwf config set`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.admin.config import set_setting


@verb("uwf config set agent uwf-claude", "git config --global uwf.agent uwf-claude")
@click.argument("name")
@click.argument("value")
def command(session: Session, name: str, value: str) -> None:
    """Change a setting.

    In this store's git config; `git config --global uwf.NAME VALUE` sets it for all stores.
    """
    store = session.open_store(create=True)
    setting = set_setting(store, name, text_argument(value, "the value"), cwd=session.cwd)
    emit(session, {"name": setting.name, "value": setting.value})
