"""Saying so: a name on the command line meant a file of the project.

Owns: the words for that. Knows nothing of: where such files are looked for.
"""

from uwf_git.cli.render import note


def note_local(name: str, file: str | None, shadows: str | None) -> None:
    """Tell that the workflow *name* is *file*, and which registered one it stands before."""
    if file is None:
        return
    if shadows is None:
        note(f"note: workflow {name} is the file {file}")
    else:
        note(f"note: workflow {name} is the file {file}, and not {shadows}, which is registered")
