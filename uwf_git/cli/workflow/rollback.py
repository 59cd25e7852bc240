"""`uwf workflow rollback`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.workflow.history import rollback_workflow


@verb(
    "uwf workflow rollback solve-issue -m 'the new reviewer is too strict'",
    "uwf workflow rollback solve-issue 4KNM2PXR3B1QW",
    exits={1: "there is no such workflow or version, or it is the newest already"},
)
@click.argument("name")
@click.argument("version", metavar="[HASH]", required=False)
@click.option(
    "-m", "--message", default="", metavar="TEXT", help="The reason, recorded in the log."
)
def command(session: Session, name: str, version: str | None, message: str) -> None:
    """Restore an older version of a workflow.

    HASH is that of the workflow or of the commit, as `uwf workflow history` shows them; without it
    the version before the newest is restored, or, if the workflow was removed, its last one. It is
    a new commit: nothing is rewritten, and a second rollback undoes the first. Threads that run
    keep the version they began with.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    done = rollback_workflow(store, caller_of(session), name, text=version, reason=reason)
    emit(
        session,
        {
            "name": done.name,
            "workflow": done.workflow,
            "version": done.version,
            "restored": done.restored,
            "replaced": done.replaced,
        },
    )
