"""Shared refs and tracking refs: what travels, and what was last seen of it at each remote.

Owns: which names below refs/threads/, refs/archive/ and refs/workflows/ are ours; the same three
folders below refs/uwf/remotes/<remote>/.
Knows nothing of: connections, what is done with a thread that came.
Always true: a tracking ref moves only from the value that was seen before the remote was asked,
so of two fetches at once the later answer stays.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from uwf_git.model.thread_id import is_thread_id
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.store.ref_listing import list_bad_files, list_refs
from uwf_git.store.refs import Oid
from uwf_git.store.remotes import SHARED, Remote
from uwf_git.store.store import Store

_REFS = "refs/"


class SharedRefs(NamedTuple):
    """The refs that travel, of one side; by thread id or workflow name."""

    threads: dict[str, Oid]
    archive: dict[str, Oid]
    workflows: dict[str, Oid]

    def find(self, kind: str, name: str) -> Oid | None:
        """Give what refs/<kind>/<name> points at, or None."""
        return self._folder(kind).get(name)

    def rows(self) -> Iterator[tuple[str, str, Oid]]:
        """Give kind, name and value of each."""
        for kind in SHARED:
            yield from ((kind, name, oid) for name, oid in self._folder(kind).items())

    def _folder(self, kind: str) -> dict[str, Oid]:
        return {"threads": self.threads, "archive": self.archive}.get(kind, self.workflows)


def read_shared(store: Store, remote: Remote | None = None) -> SharedRefs:
    """Read the shared refs of this store, or what was last seen of them at *remote*."""
    prefix = _REFS if remote is None else remote.tracking
    found: dict[str, Oid] = {}
    for kind in SHARED:
        listed = list_refs(store, f"{prefix}{kind}/")
        found.update({f"{_REFS}{kind}/{name}": oid for name, oid in listed.items()})
    return sort_refs(found)[0]


def list_unreadable(store: Store) -> list[str]:
    """Give the shared refs here whose own file holds no object id, which no listing has."""
    return [
        ref
        for kind in SHARED
        for ref in list_bad_files(store, f"{_REFS}{kind}/")
        if not sort_refs({ref: Oid("")})[1]
    ]


def sort_refs(refs: Mapping[str, Oid]) -> tuple[SharedRefs, list[str]]:
    """Sort the refs of another side, and give the names that mean neither thread nor workflow."""
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
    """Make the tracking refs of *remote*, which were as *seen*, as it is *now*.

    Raises:
        RefLocked: another git process holds one and does not let go.
    """
    # What is new comes first: a thread on its way to the archive is in both places, never in none.
    for kind, name, oid in now.rows():
        before = seen.find(kind, name)
        if before != oid:
            track(store, remote, f"{kind}/{name}", seen=before, to=oid)
    for kind, name, oid in seen.rows():
        if now.find(kind, name) is None:
            track(store, remote, f"{kind}/{name}", seen=oid, to=None)


def track(store: Store, remote: Remote, place: str, *, seen: Oid | None, to: Oid | None) -> None:
    """Note that *remote* has *place* (such as `threads/<id>`) at *to*, if we thought *seen*.

    Raises:
        RefLocked: another git process holds it and does not let go.
    """
    ref = remote.tracking + place
    if to is None:
        if seen is not None:
            store.refs.delete(ref, seen=seen)
    elif seen is None:
        store.refs.create(ref, to)
    else:
        store.refs.advance(ref, seen=seen, to=to)


def forget_tracking(store: Store, remote: Remote) -> None:
    """Remove all that was seen of *remote*.

    Raises:
        RefLocked: another git process holds one and does not let go.
    """
    for kind in SHARED:
        prefix = f"{remote.tracking}{kind}/"
        for name, oid in list_refs(store, prefix).items():
            store.refs.delete(prefix + name, seen=oid)
