"""What a push sends: which refs it changes, in which batches, and what a first push would."""

import os
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

from uwf_git.commands.remote.descendants import with_branches
from uwf_git.errors import StoreDamaged
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.message import BadMessage
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.objects.walk import has_object, is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.exchange import PushReport
from uwf_git.store.remotes.mirror import refuse_mirror
from uwf_git.store.remotes.remotes import Remote, choose_remote, remote_url
from uwf_git.store.remotes.tracking import SharedRefs, read_shared
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_thread
from uwf_git.store.threads.message import parse_thread_message

# Push plans: which refs of a remote a push changes, and which it leaves.
#
# Forward only: nothing is removed from the remote that is not an ancestor of what replaces it. An
# archive replaces the active ref in one unit; an archive at the remote wins; refs that are
# unknown here are left alone.

PushStatus = Literal["created", "moved", "archived", "deleted"]
Standing = Literal["unchanged", "behind", "fetch-first", "diverged", "damaged"]


class RefChange(NamedTuple):
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
    units: list[PushUnit]
    left: list[NotPushed]


def plan_push(
    objects: ObjectStore, here: SharedRefs, there: SharedRefs, *, seen: SharedRefs | None = None
) -> PushPlan:
    """Plan the push of the refs *here* to a remote with the refs *there*.

    With *seen*, the tracking refs, a ref without new commits is ``behind``, not ``fetch-first``.
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


# First pushes: what `uwf push` would send out of a project's repository for the first time.
#
# A project's remote has other readers than a store's: what was asked and answered may not be
# meant for them.


class FirstPush(NamedTuple):
    """What is sent for the first time, and where."""

    remote: Remote
    url: str
    """Where the push goes, without passwords."""

    threads: int
    workflows: int


def find_first_push(
    store: Store, name: str | None, threads: Sequence[str] = ()
) -> FirstPush | None:
    """Return the first push of a project's repository to the remote *name*, or None."""
    refuse_mirror(store.config)
    remote = choose_remote(store.config, name)
    if not is_project(store) or any(read_shared(store, remote).rows()):
        return None
    here = read_shared(store)
    if threads:
        ids = [resolve_thread(store, text) for text in threads]
        here = here.only(with_branches(store, ids))
    if not any(here.rows()):
        return None
    url = remote_url(store, remote, for_push=True)
    names = here.threads.keys() | here.archive.keys()
    return FirstPush(remote, url.shown, len(names), len(here.workflows))


def is_project(store: Store) -> bool:
    """Check whether the repository has a work tree."""
    # git guesses the same where the config does not say.
    is_bare = os.path.basename(store.path) != ".git"
    return not store.config.get_flag("core.bare", default=is_bare)


# Push batches: send many units at once, and fewer at a time when the remote refuses them.
#
# The changes of a unit are sent apart only to a remote without atomic pushes; then the archive is
# created before the active ref is deleted. A hook that refuses one thread refuses the whole push,
# so a refused push is halved until the refused unit is alone.


class UnitResult(NamedTuple):
    unit: PushUnit
    reason: str | None
    """Why it was refused; None if it was done."""

    output: str


class SendUnits(Protocol):
    def __call__(self, units: Sequence[PushUnit], *, atomic: bool) -> PushReport:
        """Push *units* at once."""


FELL_WITH_OTHERS = "pre-receive: another part of the push was refused"
"""The reason for a change that was refused because of another in the same push."""

REF_MOVED = "incorrect old value provided"
"""git's reason when a ref no longer has the value that the push expected."""

# What git says of each change when it refused the whole push: a hook, `--atomic`, or a bad pack.
_WHOLE_PUSH = ("pre-receive", "atomic", "unpack")

NOT_MOVED = "unable to migrate objects"
"""git's reason when a gc of the server has just removed a folder of objects: it is back now."""

_MOST_TRIES = 3

_UNREPORTED = "the remote did not report the result"
_MOST_PUSHES = 64


def single_units(units: Sequence[PushUnit]) -> list[PushUnit]:
    """Return the units of one change, which need no atomic push."""
    return [unit for unit in units if len(unit.changes) == 1]


def send_units(send: SendUnits, units: Sequence[PushUnit], first: PushReport) -> list[UnitResult]:
    """Return the result of each of *units*; send what the *first* push did not settle.

    The first push held the single units.
    """
    batches = _Batches(send)
    together = [unit for unit in units if len(unit.changes) > 1]
    return [
        *batches.settle(single_units(units), first, atomic=False),
        *batches.send(together, atomic=True),
    ]


class _Batches:
    """Sends batches, at most `_MOST_PUSHES` of them."""

    def __init__(self, send: SendUnits) -> None:
        self._send = send
        self._left = _MOST_PUSHES
        self._tries = _MOST_TRIES

    def send(self, units: Sequence[PushUnit], *, atomic: bool) -> list[UnitResult]:
        if not units:
            return []
        self._left -= 1
        report = self._send(units, atomic=atomic)
        if not report.is_atomic:
            return self._send_in_order(units)
        return self.settle(units, report, atomic=atomic)

    def settle(
        self, units: Sequence[PushUnit], report: PushReport, *, atomic: bool
    ) -> list[UnitResult]:
        """Return the result of each of *units*; push again what was refused because of others."""
        results = [_judge(unit, report) for unit in units]
        if self._tries > 0 and any(NOT_MOVED in (each.reason or "") for each in results):
            self._tries -= 1
            return self.send(units, atomic=atomic)
        suspects = [each.unit for each in results if each.reason and _is_whole_push(each.reason)]
        if self._left <= 0 or not suspects or len(units) <= 1:
            return results
        if len(suspects) < len(units):
            again = self.send(suspects, atomic=atomic)
        else:
            # The remote does not say which unit it refused: push each half alone.
            middle = len(units) // 2
            halves = (units[:middle], units[middle:])
            again = []
            for half in halves:
                if self._left > 0:
                    again += self.send(half, atomic=atomic)
        later = {each.unit.name: each for each in again}
        return [later.get(each.unit.name, each) for each in results]

    def _send_in_order(self, units: Sequence[PushUnit]) -> list[UnitResult]:
        """Push the first change of each unit, then the rest of those that were accepted."""
        begun = self.send([unit._replace(changes=unit.changes[:1]) for unit in units], atomic=False)
        rest = {unit.name: unit.changes[1:] for unit in units}
        later = [
            each.unit._replace(changes=rest[each.unit.name]) for each in begun if not each.reason
        ]
        ended = {each.unit.name: each for each in self.send(later, atomic=False)}
        found = [ended.get(each.unit.name, each) for each in begun]
        return [each._replace(unit=unit) for each, unit in zip(found, units, strict=True)]


def _judge(unit: PushUnit, report: PushReport) -> UnitResult:
    told = [report.statuses.get(change.ref, _UNREPORTED) for change in unit.changes]
    reasons = [reason for reason in told if reason is not None]
    # The change that caused the refusal has the more specific reason.
    reasons.sort(key=_is_whole_push)
    return UnitResult(unit, reasons[0] if reasons else None, report.output)


def _is_whole_push(reason: str) -> bool:
    return any(word in reason for word in _WHOLE_PUSH)
