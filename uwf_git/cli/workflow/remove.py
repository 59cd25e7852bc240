"""`uwf workflow remove`."""

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.workflow_remove import remove_workflow


@verb(
    "uwf workflow remove solve-issue -m 'solve-bug took its place'",
    exits={1: "there is no such workflow"},
)
@click.argument("name")
@click.option("-m", "--message", default="", metavar="TEXT", help="Why; it stands in the log.")
def command(session: Session, name: str, message: str) -> None:
    """Take a workflow out of the registry.

    It is not listed any more, and no thread can be started by its name. Nothing is deleted: its
    history stays, threads that run go on, and `uwf workflow rollback` brings it back.
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
    pack_when_due(session, store)
