"""`uwf plan clean`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.plan.directory import (
    directory_option,
    find_directory,
    find_store_of,
    read_settings_of,
)
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.plan.clean import clean_plans


@verb(
    "uwf plan clean",
    "uwf plan clean --all -d ~/shop",
    exits={1: "a folder is behind a link", 4: "an agent is at work"},
)
@directory_option
@click.option("--all", "with_plans", is_flag=True, help="Also remove the plan files.")
def clean_command(session: Session, directory: str | None, *, with_plans: bool) -> None:
    """End the unfinished thread of a directory, and remove its state files.

    The history of the thread stays. No link is followed, and nothing else is removed: not the work,
    and not the session logs.
    """
    workdir = find_directory(session, directory)
    store = find_store_of(session, workdir)
    settings = read_settings_of(session, store, workdir)
    cleaned = clean_plans(store, caller_of(session), workdir, settings, with_plans=with_plans)
    emit(session, {"ended": cleaned.ended, "removed": cleaned.removed})
