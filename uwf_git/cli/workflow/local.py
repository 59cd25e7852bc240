"""The note that a workflow name on the command line means a file of the project."""

from uwf_git.cli.output.render import note


def note_local(name: str, file: str | None, shadows: str | None) -> None:
    """Note that the workflow *name* is *file*, and which registered one it hides."""
    if file is None:
        return
    if shadows is None:
        note(f"note: workflow {name} is the file {file}")
    else:
        note(f"note: workflow {name} is the file {file}, and not {shadows}, which is registered")
