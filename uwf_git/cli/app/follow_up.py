"""What follows a command that wrote (commands/after.py); a listener's failure is a note."""

from collections.abc import Mapping

from uwf_git.cli.output.render import note
from uwf_git.commands.after import follow_up
from uwf_git.store.store import Store


def follow_up_noted(store: Store, environ: Mapping[str, str]) -> None:
    """Announce and pack what was done through *store*, and note what went wrong.

    The boundary calls it at the end of each command; a drive also calls it after each step.
    """
    problem = follow_up(store, environ)
    if problem is not None:
        note(f"note: {problem}")
