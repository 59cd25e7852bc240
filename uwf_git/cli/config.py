"""`uwf config ...`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit
from uwf_git.cli.output.table import wide_option
from uwf_git.cli.session import Session
from uwf_git.commands.admin.config import get_store_setting, list_settings, set_setting


@verb("uwf config get agent", exits={1: "it is not set"})
@click.argument("name")
def get_command(session: Session, name: str) -> None:
    """Print a setting.

    NAME may leave out the `uwf.` in front.
    """
    setting = get_store_setting(session.open_store(create=True), name)
    emit(session, {"name": setting.name, "value": setting.value})


@verb("uwf config list --format text")
@click.option("--all", "with_seldom", is_flag=True, help="Those that are hardly ever set as well.")
@wide_option
def list_command(session: Session, *, with_seldom: bool, wide: bool) -> None:
    """List the settings.

    Each has its effective value here and its meaning. `git config --unset uwf.NAME` in the store
    removes one.
    """
    settings = list_settings(session.open_store(create=True), with_seldom=with_seldom)
    emit(session, [setting._asdict() for setting in settings], wide=wide)


@verb("uwf config set agent uwf-claude", "git config --global uwf.agent uwf-claude")
@click.argument("name")
@click.argument("value")
def set_command(session: Session, name: str, value: str) -> None:
    """Change a setting.

    In this store's git config; `git config --global uwf.NAME VALUE` sets it for all stores.
    """
    store = session.open_store(create=True)
    setting = set_setting(store, name, text_argument(value, "the value"), cwd=session.cwd)
    emit(session, {"name": setting.name, "value": setting.value})
