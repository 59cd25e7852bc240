"""`uwf workflow remove`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.workflow.history import remove_workflow


@verb(
    "uwf workflow remove solve-issue -m 'solve-bug took its place'",
    exits={1: "there is no such workflow"},
)
@click.argument("name")
@click.option(
    "-m", "--message", default="", metavar="TEXT", help="The reason, recorded in the log."
)
def command(session: Session, name: str, message: str) -> None:
    """Remove a workflow from the registry.

    It is no longer listed, and no thread can be started by its name. Nothing is deleted: its
    history stays, threads that run go on, and `uwf workflow rollback` restores it.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    removed = remove_workflow(store, caller_of(session), name, reason=reason)
    emit(
        session,
        {
            "name": removed.name,
            "workflow": removed.workflow,
            "version": removed.version,
            "removed": True,
        },
    )
    note(f"`uwf workflow rollback {removed.name}` brings it back")
