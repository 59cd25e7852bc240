"""Push plans: which refs of a remote a push changes, and which it must leave.

Owns: the rules: forward only; an archive replaces the active ref, as one; an archive that is
there wins; what is there and unknown here is left alone.
Knows nothing of: connections; it is given what the remote says it has.
Always true: no change of a plan takes anything away from the remote: what a ref moves from, or
what is deleted, stands behind what is put there.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from uwf_git.store.descent import goes_on_from, has_object
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid
from uwf_git.store.tracking import SharedRefs

Status = Literal["created", "moved", "archived", "deleted"]
Standing = Literal["unchanged", "behind", "fetch-first", "diverged", "damaged"]


class Change(NamedTuple):
    """One ref of the remote that is to be changed."""

    ref: str
    before: Oid | None
    after: Oid | None
    status: Status


class Unit(NamedTuple):
    """Changes that belong together: all of them are made, or none."""

    name: str
    """The ref here that they come from."""

    changes: tuple[Change, ...]


class Left(NamedTuple):
    """A ref that is not pushed."""

    ref: str
    standing: Standing
    here: Oid
    there: Oid | None


class Plan(NamedTuple):
    """What a push does."""

    units: list[Unit]
    left: list[Left]


def plan_push(
    objects: ObjectStore, here: SharedRefs, there: SharedRefs, *, seen: SharedRefs | None = None
) -> Plan:
    """Plan to make *there* what is *here*, as far as it loses nothing there.

    What was last *seen* there tells what is new here: where nothing is, we are only behind.
    """
    units: list[Unit] = []
    left: list[Left] = []
    for each in _decide(objects, here, there):
        if isinstance(each, Unit):
            units.append(each)
        elif seen and each.standing == "fetch-first" and _is_known_there(objects, each, seen):
            left.append(each._replace(standing="behind"))
        else:
            left.append(each)
    return Plan(units, left)


def _is_known_there(objects: ObjectStore, left: Left, seen: SharedRefs) -> bool:
    """Tell whether the remote has had all that we have, when it was last looked at."""
    _refs, kind, name = left.ref.split("/", 2)
    last = seen.find(kind, name)
    return last is not None and goes_on_from(objects, last, left.here)


def _decide(objects: ObjectStore, here: SharedRefs, there: SharedRefs) -> Iterator[Unit | Left]:
    for name, oid in here.archive.items():
        yield _push_archived(objects, name, oid, there)
    for name, oid in here.threads.items():
        # One that is archived as well is what is left of a move.
        if name not in here.archive:
            yield _push_active(objects, name, oid, there)
    for name, oid in here.workflows.items():
        yield _push_forward(objects, f"refs/workflows/{name}", oid, there.workflows.get(name))


def _push_active(objects: ObjectStore, name: str, here: Oid, there: SharedRefs) -> Unit | Left:
    ended = there.archive.get(name)
    ref = f"refs/threads/{name}"
    if ended is None:
        return _push_forward(objects, ref, here, there.threads.get(name))
    if goes_on_from(objects, ended, here):
        return Left(ref, "fetch-first", here, ended)
    return Left(ref, _apart(objects, here, ended), here, ended)


def _push_forward(objects: ObjectStore, ref: str, here: Oid, there: Oid | None) -> Unit | Left:
    if here == there:
        return Left(ref, "unchanged", here, there)
    if there is None:
        return Unit(ref, (Change(ref, None, here, "created"),))
    if goes_on_from(objects, here, there):
        return Unit(ref, (Change(ref, there, here, "moved"),))
    if goes_on_from(objects, there, here):
        return Left(ref, "behind", here, there)
    return Left(ref, _apart(objects, here, there), here, there)


def _push_archived(objects: ObjectStore, name: str, here: Oid, there: SharedRefs) -> Unit | Left:
    ref, active_ref = f"refs/archive/{name}", f"refs/threads/{name}"
    ended, active = there.archive.get(name), there.threads.get(name)
    if ended not in {None, here}:
        return Left(ref, _apart(objects, here, ended), here, ended)
    if active is not None and not goes_on_from(objects, here, active):
        return Left(ref, _apart(objects, here, active), here, active)
    changes = []
    if ended is None:
        changes.append(Change(ref, None, here, "archived"))
    if active is not None:
        changes.append(Change(active_ref, active, None, "deleted"))
    return Unit(ref, tuple(changes)) if changes else Left(ref, "unchanged", here, ended)


def _apart(objects: ObjectStore, here: Oid, there: Oid | None) -> Standing:
    """Tell two sides that went apart from one that we do not know yet, or have lost."""
    if not has_object(objects, here):
        return "damaged"
    return "diverged" if there is not None and has_object(objects, there) else "fetch-first"


def restrict(refs: SharedRefs, threads: Iterable[str]) -> SharedRefs:
    """Give of *refs* only these threads, wherever they are."""
    wanted = set(threads)
    return SharedRefs(
        {name: oid for name, oid in refs.threads.items() if name in wanted},
        {name: oid for name, oid in refs.archive.items() if name in wanted},
        {},
    )
