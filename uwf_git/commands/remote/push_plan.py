"""Push plans: which refs of a remote a push changes, and which it leaves.

Forward only: nothing is removed from the remote that is not an ancestor of what replaces it. An
archive replaces the active ref in one unit; an archive at the remote wins; refs that are unknown
here are left alone.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from uwf_git.errors import StoreDamaged
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.message import BadMessage
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.objects.walk import has_object, is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.tracking import SharedRefs
from uwf_git.store.threads.message import parse_thread_message

PushStatus = Literal["created", "moved", "archived", "deleted"]
Standing = Literal["unchanged", "behind", "fetch-first", "diverged", "damaged"]


class RefChange(NamedTuple):
    """A change of one ref of the remote."""

    ref: str
    before: Oid | None
    after: Oid | None
    status: PushStatus


class PushUnit(NamedTuple):
    """Changes that are made together or not at all."""

    name: str
    """The ref here that is pushed."""

    changes: tuple[RefChange, ...]


class NotPushed(NamedTuple):
    """A ref that is not pushed."""

    ref: str
    standing: Standing
    here: Oid
    there: Oid | None


class PushPlan(NamedTuple):
    """What a push changes, and what it leaves."""

    units: list[PushUnit]
    left: list[NotPushed]


def plan_push(
    objects: ObjectStore, here: SharedRefs, there: SharedRefs, *, seen: SharedRefs | None = None
) -> PushPlan:
    """Plan the push of the refs *here* to a remote with the refs *there*.

    With *seen*, the tracking refs, a ref without new commits here counts as ``behind`` instead of
    ``fetch-first``.
    """
    units: list[PushUnit] = []
    left: list[NotPushed] = []
    for each in _decide(objects, here, there):
        if isinstance(each, PushUnit):
            units.append(each)
        elif seen and each.standing == "fetch-first" and _is_known_there(objects, each, seen):
            left.append(each._replace(standing="behind"))
        else:
            left.append(each)
    return PushPlan(units, left)


def _is_known_there(objects: ObjectStore, left: NotPushed, seen: SharedRefs) -> bool:
    """Check whether the remote had all commits of a ref here when it was last seen."""
    _refs, kind, name = left.ref.split("/", 2)
    last = seen.find(kind, name)
    if last is None:
        return kind == "threads" and _is_new_branch(objects, left.here)
    return is_descendant(objects, last, left.here)


def _is_new_branch(objects: ObjectStore, tip: Oid) -> bool:
    """Check whether *tip* is the first commit of a branch: whoever has the branch has that too."""
    try:
        commit = read_commit(objects, tip)
        record = parse_thread_message(commit.message)
    except (StoreDamaged, BadMessage):
        return False
    return record.event == "start" and bool(commit.parents)


def _decide(
    objects: ObjectStore, here: SharedRefs, there: SharedRefs
) -> Iterator[PushUnit | NotPushed]:
    for name, oid in here.archive.items():
        yield _push_archived(objects, name, oid, there)
    for name, oid in here.threads.items():
        # If it is archived as well, archiving was interrupted.
        if name not in here.archive:
            yield _push_active(objects, name, oid, there)
    for name, oid in here.workflows.items():
        yield _push_forward(objects, f"refs/workflows/{name}", oid, there.workflows.get(name))


def _push_active(
    objects: ObjectStore, name: str, here: Oid, there: SharedRefs
) -> PushUnit | NotPushed:
    ended = there.archive.get(name)
    ref = f"refs/threads/{name}"
    if ended is None:
        return _push_forward(objects, ref, here, there.threads.get(name))
    if is_descendant(objects, ended, here):
        return NotPushed(ref, "fetch-first", here, ended)
    return NotPushed(ref, _apart(objects, here, ended), here, ended)


def _push_forward(
    objects: ObjectStore, ref: str, here: Oid, there: Oid | None
) -> PushUnit | NotPushed:
    if here == there:
        return NotPushed(ref, "unchanged", here, there)
    if there is None:
        return PushUnit(ref, (RefChange(ref, None, here, "created"),))
    if is_descendant(objects, here, there):
        return PushUnit(ref, (RefChange(ref, there, here, "moved"),))
    if is_descendant(objects, there, here):
        return NotPushed(ref, "behind", here, there)
    return NotPushed(ref, _apart(objects, here, there), here, there)


def _push_archived(
    objects: ObjectStore, name: str, here: Oid, there: SharedRefs
) -> PushUnit | NotPushed:
    ref, active_ref = f"refs/archive/{name}", f"refs/threads/{name}"
    ended, active = there.archive.get(name), there.threads.get(name)
    if ended not in {None, here}:
        return NotPushed(ref, _apart(objects, here, ended), here, ended)
    if active is not None and not is_descendant(objects, here, active):
        return NotPushed(ref, _apart(objects, here, active), here, active)
    changes = []
    if ended is None:
        changes.append(RefChange(ref, None, here, "archived"))
    if active is not None:
        changes.append(RefChange(active_ref, active, None, "deleted"))
    return PushUnit(ref, tuple(changes)) if changes else NotPushed(ref, "unchanged", here, ended)


def _apart(objects: ObjectStore, here: Oid, there: Oid | None) -> Standing:
    """Return why neither side descends from the other, as far as is known here."""
    if not has_object(objects, here):
        return "damaged"
    return "diverged" if there is not None and has_object(objects, there) else "fetch-first"


def restrict(refs: SharedRefs, threads: Iterable[str]) -> SharedRefs:
    """Return only the refs of these threads, active or archived."""
    wanted = set(threads)
    return SharedRefs(
        {name: oid for name, oid in refs.threads.items() if name in wanted},
        {name: oid for name, oid in refs.archive.items() if name in wanted},
        {},
    )
