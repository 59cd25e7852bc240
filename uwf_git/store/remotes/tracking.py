"""Shared refs, and tracking refs: what was last seen at each remote.

Shared are the refs of threads, archive and workflows; their tracking refs lie in the same
folders below refs/uwf/remotes/<remote>/. A tracking ref moves only from the value that was read
before the remote was contacted, so of two concurrent fetches the later answer stays.
"""

from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import list_bad_files, list_refs
from uwf_git.store.remotes.remotes import CLAIMS, SHARED, Remote
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

_REFS = "refs/"


class SharedRefs(NamedTuple):
    threads: dict[str, Oid]
    archive: dict[str, Oid]
    workflows: dict[str, Oid]

    def find(self, kind: str, name: str) -> Oid | None:
        return self._folder(kind).get(name)

    def rows(self) -> Iterator[tuple[str, str, Oid]]:
        for kind in SHARED:
            yield from ((kind, name, oid) for name, oid in self._folder(kind).items())

    def find_tip(self, thread: str) -> Oid | None:
        """Return the newest commit of a thread, active or archived; None for an unknown thread."""
        return self.archive.get(thread) or self.threads.get(thread)

    def only(self, threads: Container[str]) -> "SharedRefs":
        """Return the refs of these threads alone, active or archived."""
        active, archived = (
            {name: oid for name, oid in folder.items() if name in threads}
            for folder in (self.threads, self.archive)
        )
        return SharedRefs(active, archived, {})

    def _folder(self, kind: str) -> dict[str, Oid]:
        return {"threads": self.threads, "archive": self.archive}.get(kind, self.workflows)


def read_shared(store: Store, remote: Remote | None = None) -> SharedRefs:
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
        if ref.startswith(CLAIMS):
            continue
        _refs, kind, name = ref.split("/", 2)
        is_ours = check_workflow_name(name) is None if kind == "workflows" else is_thread_id(name)
        if is_ours:
            getattr(shared, kind)[name] = oid
        else:
            ignored.append(ref)
    return shared, ignored


def update_tracking(store: Store, remote: Remote, *, seen: SharedRefs, now: SharedRefs) -> None:
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
    """Move the tracking ref of each place (such as `threads/<id>`) from one value to another."""
    changes = {remote.tracking + place: move for place, move in moves.items() if move[0] != move[1]}
    store.refs.change(changes, at_once=at_once)


def forget_tracking(store: Store, remote: Remote) -> None:
    moves: dict[str, tuple[Oid | None, Oid | None]] = {}
    for kind in SHARED:
        listed = list_refs(store.path, f"{remote.tracking}{kind}/")
        moves.update({f"{kind}/{name}": (oid, None) for name, oid in listed.items()})
    track(store, remote, moves)


# Thread sides: the refs of a thread here, and its tracking refs of a remote.


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
