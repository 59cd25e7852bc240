"""Findings, and the place in the store where each was made.

Memory of a run: about 0.1 KB for each commit and 0.16 KB for each node, so 100,000 threads of five
steps take some 250 MB; caches are bounded to some 80 MB.
"""

from typing import NamedTuple

from uwf_git.store.oid import Oid


class Finding(NamedTuple):
    message: str
    """One line, lower case, that says what is wrong with what."""

    hint: str

    ref: str | None = None
    """The ref below which it was found."""

    commit: Oid | None = None
    node: str | None = None
    """The node, or the file below nodes/ that is not a node."""

    path: str | None = None
    """The path in the node's payload; None: the whole node."""


_LOOK = "see it with `git show {commit}`; another copy of this store may have it whole: `git fetch`"


class Location(NamedTuple):
    ref: str
    commit: Oid
    nodes: bytes = b""
    """The 20 bytes of the id of its `nodes/`."""

    def finding(
        self,
        message: str,
        *,
        hint: str | None = None,
        node: str | None = None,
        path: str | None = None,
    ) -> Finding:
        """Return a finding at this commit; without *hint*, with that of damage."""
        told = hint or _LOOK.format(commit=self.commit)
        return Finding(message, told, self.ref, self.commit, node, path)
