"""One run of checks: what the checks of several threads and workflows share.

Owns: where a check is at work, and what has been looked at already in this run.
Knows nothing of: what is checked.
Always true: memory grows by about 0.1 KB for a commit and 0.16 KB for a node that was checked, so
that 100,000 threads of five steps take some 250 MB; all else that is remembered is bounded, at
some 80 MB.
"""

from typing import NamedTuple

from uwf_git.commands.trouble import Trouble
from uwf_git.store.refs import Oid

_LOOK = "see it with `git show {commit}`; another copy of this store may have it whole: `git fetch`"


class Site(NamedTuple):
    """The commit that is looked at."""

    ref: str
    commit: Oid
    nodes: bytes = b""
    """The 20 bytes of the id of its `nodes/`."""

    def trouble(
        self,
        message: str,
        *,
        hint: str | None = None,
        node: str | None = None,
        path: str | None = None,
    ) -> Trouble:
        """Give what is wrong here; without *hint*, that of damage."""
        told = hint or _LOOK.format(commit=self.commit)
        return Trouble(message, told, self.ref, self.commit, node, path)
