"""Check the settings of a shared store: can a pusher's own settings switch its rules off."""

import os
import shlex

from uwf_git.commands.verify.finding import Finding
from uwf_git.store.git.hook_files import find_unpinned


def find_hub_gap(git_dir: str) -> Finding | None:
    """Return how pushes may escape the rules of the shared store at *git_dir*, or None.

    A repository without the hooks of `uwf init --shared` has no rules, so None as well.

    Raises:
        BadConfig: its config cannot be parsed.
    """
    problem = find_unpinned(git_dir)
    if problem is None:
        return None
    path = shlex.quote(os.path.abspath(git_dir))
    return Finding(
        f"some pushes to the shared store {git_dir} may not be checked: {problem}",
        f"its owner mends it: `uwf init --shared {path}`",
    )
