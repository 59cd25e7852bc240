"""`uwf workflow show`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.cli.workflow.local import note_local
from uwf_git.commands.workflow.show import show_workflow


@verb("uwf workflow show solve-issue", "uwf workflow show 4KNM2PXR3B1QW --format yaml")
@click.argument("workflow")
def command(session: Session, workflow: str) -> None:
    """Show a workflow.

    WORKFLOW is a name (of a file in .workflows, else the newest version of a registered workflow)
    or the hash of any version.
    """
    document = show_workflow(session.open_store(create=True), workflow, cwd=session.cwd)
    note_local(document["name"], document.get("file"), document.get("shadows"))
    emit(session, document)
