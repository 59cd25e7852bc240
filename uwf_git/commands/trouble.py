"""Troubles: what a check of the store finds wrong, one by one.

Owns: the shape of a finding: what, where, and what to do. Knows nothing of: how it was found.
"""

from typing import NamedTuple

from uwf_git.store.refs import Oid


class Trouble(NamedTuple):
    """One thing that is wrong."""

    message: str
    """One line, lower case, that says what is wrong with what."""

    hint: str
    """What to type next."""

    ref: str | None = None
    """The ref below which it was found."""

    commit: Oid | None = None
    node: str | None = None
    """The node, or the file below nodes/ that is none."""

    path: str | None = None
    """Where in the node's payload; None if it is the node as a whole."""
