"""Thread sides: the refs of a thread here, and its tracking refs of a remote."""

from typing import NamedTuple

from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import Remote
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE


class Sides(NamedTuple):
    """The refs of a thread on both sides; None for a missing ref."""

    active: Oid | None
    archived: Oid | None
    there_active: Oid | None
    there_archived: Oid | None

    @property
    def is_in_sync(self) -> bool:
        """Check without reading a commit that there is nothing to reconcile."""
        if self.archived is not None:
            return self.active is None and self.there_archived in {None, self.archived}
        if self.there_archived is not None:
            return False
        return self.there_active in {None, self.active}


def read_sides(store: Store, remote: Remote, thread: ThreadId) -> Sides:
    # Active before archive: a thread archived in between is then seen in both, not in neither.
    return Sides(
        store.refs.find(ACTIVE + thread),
        store.refs.find(ARCHIVE + thread),
        store.refs.find(f"{remote.tracking}threads/{thread}"),
        store.refs.find(f"{remote.tracking}archive/{thread}"),
    )
