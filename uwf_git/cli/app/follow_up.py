"""What follows a command that wrote (commands/after.py), with its warnings as notes."""

from collections.abc import Callable, Mapping

from uwf_git.cli.output.render import note
from uwf_git.commands.after import follow_up, warn_of_files, warn_of_guess, warn_of_worktrees
from uwf_git.store.store import Store


def follow_up_noted(
    store: Store, environ: Mapping[str, str], tell: Callable[[str], None] = note
) -> None:
    """Announce and pack what was done through *store*, and *tell* what went wrong.

    The boundary calls it at the end of each command; a drive also calls it after each step.
    """
    guess = warn_of_guess(store, environ)
    for warning in [
        *([] if guess is None else [guess]),
        *warn_of_worktrees(store),
        *warn_of_files(store),
    ]:
        tell(f"warning: {warning}")
    problem = follow_up(store, environ)
    if problem is not None:
        tell(f"note: {problem}")
