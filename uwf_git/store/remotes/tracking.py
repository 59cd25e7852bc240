"""Tracking refs: what was last seen at each remote, and where a thread diverged from it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.store.objects.walk import has_object, is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import list_bad_files, list_refs
from uwf_git.store.remotes.remotes import SHARED, Remote, list_remotes
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.workflows.registry import WORKFLOWS

# Shared refs, and tracking refs: what was last seen at each remote.
#
# Shared are the refs of threads, archive and workflows; their tracking refs lie in the same
# folders below refs/uwf/remotes/<remote>/. A tracking ref moves only from the value that was read
# before the remote was contacted, so of two concurrent fetches the later answer stays.

_REFS = "refs/"


class SharedRefs(NamedTuple):
    """The shared refs of one side, by thread id or workflow name."""

    threads: dict[str, Oid]
    archive: dict[str, Oid]
    workflows: dict[str, Oid]

    def find(self, kind: str, name: str) -> Oid | None:
        """Return the value of refs/<kind>/<name>, or None."""
        return self._folder(kind).get(name)

    def rows(self) -> Iterator[tuple[str, str, Oid]]:
        """Yield kind, name and value of each ref."""
        for kind in SHARED:
            yield from ((kind, name, oid) for name, oid in self._folder(kind).items())

    def _folder(self, kind: str) -> dict[str, Oid]:
        return {"threads": self.threads, "archive": self.archive}.get(kind, self.workflows)


def read_shared(store: Store, remote: Remote | None = None) -> SharedRefs:
    """Read the shared refs of this store, or those last seen at *remote*."""
    prefix = _REFS if remote is None else remote.tracking
    found: dict[str, Oid] = {}
    for kind in SHARED:
        listed = list_refs(store.path, f"{prefix}{kind}/")
        found.update({f"{_REFS}{kind}/{name}": oid for name, oid in listed.items()})
    return sort_refs(found)[0]


def list_unreadable(store: Store) -> list[str]:
    """List the shared refs whose loose file holds no object id; `read_shared` leaves them out."""
    return [
        ref
        for kind in SHARED
        for ref in list_bad_files(store.path, f"{_REFS}{kind}/")
        if not sort_refs({ref: Oid("")})[1]
    ]


def sort_refs(refs: Mapping[str, Oid]) -> tuple[SharedRefs, list[str]]:
    """Sort refs by kind; also return those that name neither a thread nor a workflow."""
    shared, ignored = SharedRefs({}, {}, {}), []
    for ref, oid in refs.items():
        _refs, kind, name = ref.split("/", 2)
        is_ours = check_workflow_name(name) is None if kind == "workflows" else is_thread_id(name)
        if is_ours:
            getattr(shared, kind)[name] = oid
        else:
            ignored.append(ref)
    return shared, ignored


def update_tracking(store: Store, remote: Remote, *, seen: SharedRefs, now: SharedRefs) -> None:
    """Move the tracking refs of *remote* from *seen* to *now*.

    Raises:
        RefLocked: another process holds the lock of one.
    """
    places = dict.fromkeys((kind, name) for side in (now, seen) for kind, name, _oid in side.rows())
    moves = {
        f"{kind}/{name}": (seen.find(kind, name), now.find(kind, name)) for kind, name in places
    }
    # A thread that was archived is never in none of both places.
    archived = (seen.threads.keys() - now.threads.keys()) & now.archive.keys()
    track(store, remote, moves, at_once=bool(archived))


def track(
    store: Store,
    remote: Remote,
    moves: Mapping[str, tuple[Oid | None, Oid | None]],
    *,
    at_once: bool = False,
) -> None:
    """Move the tracking ref of each place (such as `threads/<id>`) from one value to another.

    Raises:
        RefLocked: another process holds the lock of one.
    """
    changes = {remote.tracking + place: move for place, move in moves.items() if move[0] != move[1]}
    store.refs.change(changes, at_once=at_once)


def forget_tracking(store: Store, remote: Remote) -> None:
    """Remove the tracking refs of *remote*.

    Raises:
        RefLocked: another process holds the lock of one.
    """
    moves: dict[str, tuple[Oid | None, Oid | None]] = {}
    for kind in SHARED:
        listed = list_refs(store.path, f"{remote.tracking}{kind}/")
        moves.update({f"{kind}/{name}": (oid, None) for name, oid in listed.items()})
    track(store, remote, moves)


# Thread sides: the refs of a thread here, and its tracking refs of a remote.


class Sides(NamedTuple):
    """The refs of a thread on both sides; None where a ref does not exist."""

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
    """Read the refs of *thread* here, and those last seen at *remote*.

    Raises:
        BadRef: one of the refs holds no object id.
    """
    # Active before archive: a thread archived in between is then seen in both, not in neither.
    return Sides(
        store.refs.find(ACTIVE + thread),
        store.refs.find(ARCHIVE + thread),
        store.refs.find(f"{remote.tracking}threads/{thread}"),
        store.refs.find(f"{remote.tracking}archive/{thread}"),
    )


# Divergence: refs that neither go on from what a remote last had, nor lead to it.


class Divergence(NamedTuple):
    """A remote whose history of a thread or workflow differs from the one here."""

    remote: str
    there: Oid


class RemoteHeads:
    """The heads that were last seen at all remotes, read once."""

    def __init__(self, store: Store) -> None:
        self._objects = store.objects
        self._heads = {
            remote.name: {
                prefix: list_refs(store.path, remote.tracking + prefix.removeprefix("refs/"))
                for prefix in (ARCHIVE, ACTIVE, WORKFLOWS)
            }
            for remote in list_remotes(store.config)
        }

    def find_thread(self, thread: str, here: Oid) -> Iterator[Divergence]:
        """Yield the remotes from which *thread*, at *here*, has diverged."""
        return self._find((ARCHIVE, ACTIVE), thread, here)

    def find_workflow(self, name: str, here: Oid) -> Iterator[Divergence]:
        """Yield the remotes from which the workflow *name*, at *here*, has diverged."""
        return self._find((WORKFLOWS,), name, here)

    def _find(self, prefixes: tuple[str, ...], name: str, here: Oid) -> Iterator[Divergence]:
        for remote, heads in self._heads.items():
            seen = (heads[prefix].get(name) for prefix in prefixes)
            there = next((oid for oid in seen if oid is not None), None)
            if there is not None and self._differ(here, there):
                yield Divergence(remote, there)

    def _differ(self, here: Oid, there: Oid) -> bool:
        if is_descendant(self._objects, here, there) or is_descendant(self._objects, there, here):
            return False
        # A lost commit of the remote is for `git fsck`.
        return all(has_object(self._objects, oid) for oid in (here, there))
