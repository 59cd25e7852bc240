"""The threads of which a branch is one, as far as they are in this store."""

from typing import TYPE_CHECKING

from uwf_git.model.thread_id import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.local_files import settings_file
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

if TYPE_CHECKING:
    from uwf_git.store.git.fenced import Kept


def read_trunk(store: Store, snapshot: Snapshot) -> Snapshot | None:
    """Read the thread of which this one is a branch; None if it is none, or not in this store."""
    trunk = snapshot.get_trunk()
    head = None if trunk is None else find_head(store, trunk)
    return None if head is None else read_snapshot(store, head.commit)


def read_root(store: Store, snapshot: Snapshot) -> Snapshot:
    """Read the outermost thread here of which this one is a branch; *snapshot* if it is none."""
    while (trunk := read_trunk(store, snapshot)) is not None:
        snapshot = trunk
    return snapshot


def find_settings(store: Store, thread: ThreadId) -> "Kept":
    """Return the settings of git that the project had when the outermost thread began."""
    from uwf_git.store.git.fenced import read_settings  # noqa: PLC0415 (few threads start git)

    head = find_head(store, thread)
    if head is not None:
        thread = read_root(store, read_snapshot(store, head.commit)).record.thread
    return read_settings(settings_file(store, thread))
