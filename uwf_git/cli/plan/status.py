"""`uwf plan status`."""

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.plan.directory import (
    directory_option,
    find_directory,
    find_store_of,
    read_settings_of,
)
from uwf_git.cli.session.settings import Session
from uwf_git.commands.plan.plans import read_plan_status


@verb("uwf plan status", "uwf plan status -d ~/shop --format text")
@directory_option
def command(session: Session, directory: str | None) -> None:
    """Show where the plans of a directory stand.

    The phase is idle, planning, executing, completed, failed or waiting_human. The document is that
    of .state/workflow.state.json, which comes back if it was deleted.
    """
    workdir = find_directory(session, directory)
    store = find_store_of(session, workdir)
    emit(session, read_plan_status(store, workdir, read_settings_of(session, store, workdir)))
