"""`uwf workflow rollback`."""

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.workflow_rollback import rollback_workflow


@verb(
    "uwf workflow rollback solve-issue -m 'the new reviewer is too strict'",
    "uwf workflow rollback solve-issue 4KNM2PXR3B1QW",
    exits={1: "there is no such workflow or version, or it is the newest already"},
)
@click.argument("name")
@click.argument("version", metavar="[HASH]", required=False)
@click.option("-m", "--message", default="", metavar="TEXT", help="Why; it stands in the log.")
def command(session: Session, name: str, version: str | None, message: str) -> None:
    """Make an older version of a workflow its newest one.

    HASH is that of the workflow or of the commit, as `uwf workflow history` shows them; without
    it the version before the newest comes back, or, if the workflow was removed, the one that
    was. It is a new commit: nothing is rewritten, and rolling back twice leads forward again.
    Threads that run keep the version they began with.
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
    pack_when_due(session, store)
