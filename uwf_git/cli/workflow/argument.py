"""The argument WORKFLOW, which may be a file, and the note that it means one of the project."""

import os

from uwf_git.cli.app.parameters import Input
from uwf_git.cli.output.render import note
from uwf_git.cli.session.settings import Session


def name_workflow(session: Session, workflow: str, *, workdir: str | None = None) -> str:
    """Return the name or the hash that *workflow* means; a YAML file is registered first.

    *workdir* is where its agents are to run.
    """
    if not is_file(workflow):
        return workflow
    # Reading YAML costs 70 ms of start-up, which a name does not need.
    from uwf_git.cli.workflow.put import put_file  # noqa: PLC0415 (see above)

    return put_file(session, Input(workflow), workdir=workdir).workflow


def is_file(workflow: str) -> bool:
    """Check for a file: names have no slash, and workflow files end in .yaml."""
    if workflow == "-" or os.sep in workflow:
        return True
    return workflow.endswith((".yaml", ".yml")) and os.path.lexists(workflow)


def note_local(name: str, file: str | None, shadows: str | None) -> None:
    """Note that the workflow *name* is *file*, and which registered one it hides."""
    if file is None:
        return
    if shadows is None:
        note(f"note: workflow {name} is the file {file}")
    else:
        note(f"note: workflow {name} is the file {file}, and not {shadows}, which is registered")
