"""Thread sides: where a thread is here, and where a remote had it when it was last seen.

Owns: reading the four refs that tell. Knows nothing of: what is made of them.
"""

from typing import NamedTuple

from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.refs import Oid
from uwf_git.store.remotes import Remote
from uwf_git.store.store import Store


class Sides(NamedTuple):
    """Where a thread is on each side; None where it is not."""

    active: Oid | None
    archived: Oid | None
    there_active: Oid | None
    there_archived: Oid | None

    @property
    def is_settled(self) -> bool:
        """Tell without reading a commit whether there is nothing to do."""
        if self.archived is not None:
            return self.active is None and self.there_archived in {None, self.archived}
        if self.there_archived is not None:
            return False
        return self.there_active in {None, self.active}


def read_sides(store: Store, remote: Remote, thread: ThreadId) -> Sides:
    """Read where *thread* is, here and at *remote* when it was last seen.

    Raises:
        BadRef: one of its refs holds something else than an object id.
    """
    # Active before archived: one that moves in between is in both, never in neither.
    return Sides(
        store.refs.find(ACTIVE + thread),
        store.refs.find(ARCHIVE + thread),
        store.refs.find(f"{remote.tracking}threads/{thread}"),
        store.refs.find(f"{remote.tracking}archive/{thread}"),
    )
