"""What a push sends: which refs it changes, in which batches, and what a first push would."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, Protocol

from uwf_git.commands.caller import Caller
from uwf_git.errors import Refused, StoreDamaged, name_some
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.config import list_mirrors, refuse_mirror
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.objects.objects import ObjectStore, has_object
from uwf_git.store.remotes.incoming import PushReport
from uwf_git.store.remotes.remotes import (
    Remote,
    SharedRefs,
    choose_remote,
    forget_tracking,
    list_remotes,
    read_shared,
    remote_url,
    remove_remote_settings,
    repair_remote,
    shown_url,
)
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import find_head
from uwf_git.store.threads.history import read_at, read_snapshot, walk_history
from uwf_git.store.threads.naming import resolve_thread

# `uwf remote list|add|remove|repair`: the repositories that this store shares with.


def list_remote_rows(store: Store) -> list[dict[str, Any]]:
    """Return a row for each remote: its URLs, and how much was last seen there."""
    rows = []
    for remote in list_remotes(store.config):
        seen = read_shared(store, remote)
        push_url = ", ".join(map(shown_url, remote.push_urls))
        rows.append(
            {
                "name": remote.name,
                "url": remote.shown,
                **({"pushUrl": push_url} if push_url else {}),
                "threads": len(seen.threads.keys() - seen.archive.keys()),
                "archived": len(seen.archive),
                "workflows": len(seen.workflows),
            }
        )
    return rows


def remove_remote(store: Store, name: str) -> Remote:
    remote = choose_remote(store.config, name)
    # Settings last: if this is killed in between, the same command does the rest.
    forget_tracking(store, remote)
    remove_remote_settings(store, name)
    left = list_remotes(open_store(store.path, environ=store.environ).config)
    if any(each.name == name for each in left):
        raise Refused(
            f"remote {name} is also in settings outside of this repository's config",
            code="remote-elsewhere",
            hint="git says where: `git config --show-origin --get-regexp '^remote[.]'`",
            remote=name,
        )
    return remote


def repair_remotes(store: Store, caller: Caller, name: str | None) -> list[str]:
    """Make the remote *name*, or every mirror, a remote for uwf; return the names."""
    mirrors = list_mirrors(store.config)
    if name is not None and name not in mirrors:
        choose_remote(store.config, name)
        return []
    names = mirrors if name is None else [name]
    for each in names:
        repair_remote(store, each)
    left = list_mirrors(open_store(store.path, environ=caller.environ).config)
    if unchanged := [each for each in names if each in left]:
        raise Refused(
            f"remote {name_some(unchanged)} is a mirror by settings outside of this repository",
            code="mirror-elsewhere",
            hint="git says where: `git config --show-origin --get-regexp '^remote[.]'`",
            remotes=unchanged,
        )
    return names


# The branches of threads, and theirs: what goes along with a thread that is pushed or fetched.


def with_branches(
    store: Store, threads: Sequence[ThreadId], seen: SharedRefs | None = None
) -> list[ThreadId]:
    """List *threads* and all below them, as far as they are here; each once.

    Without the branches that a thread had joined when its remote was last *seen*: of a deep
    thread, only the newest commits are read.
    """
    found: dict[ThreadId, None] = {}
    waiting = list(threads)
    while waiting:
        thread = waiting.pop()
        if thread not in found:
            found[thread] = None
            waiting += _list_branches(store, thread, seen and seen.find_tip(thread))
    return list(found)


def with_family(store: Store, threads: Sequence[ThreadId], seen: SharedRefs) -> list[ThreadId]:
    found = dict.fromkeys(with_branches(store, threads, seen))
    waiting = list(threads)
    while waiting:
        head = find_head(store, waiting.pop())
        # What is damaged here, the fetch reports.
        with suppress(StoreDamaged):
            trunk = None if head is None else read_snapshot(store, head.commit).get_trunk()
            if trunk is not None and trunk not in found:
                found[trunk] = None
                waiting.append(trunk)
    return list(found)


def _list_branches(store: Store, thread: ThreadId, last: Oid | None) -> Iterator[ThreadId]:
    head = find_head(store, thread)
    if head is None:
        return
    # What is behind damage cannot be pushed either.
    with suppress(StoreDamaged):
        for snapshot in walk_history(store, head.commit):
            # The branches that it has at its *last* known commit may have gone on.
            is_last = snapshot.commit.oid == last
            has_split = is_last or snapshot.record.event == "split"
            split = snapshot.get_present().split if has_split else None
            yield from () if split is None else (child.thread for child in split.children)
            if is_last:
                return


def list_new_joins(store: Store, tip: Oid, known: Oid) -> dict[ThreadId, Oid]:
    """List the branches that the thread at *tip* has joined since *known*, and their ends."""
    ends: dict[ThreadId, Oid] = {}
    # Told when its objects are collected.
    with suppress(StoreDamaged):
        for at in walk_history(store, tip):
            if at.commit.oid == known:
                break
            for end in at.commit.parents[1:] if at.record.event == "join" else ():
                ends[read_snapshot(store, end).record.thread] = end
    return ends


def find_false_join(
    store: Store, ends: Mapping[ThreadId, Oid], there: SharedRefs
) -> ThreadId | None:
    """Return the first branch of *ends* that a remote with the refs *there* has elsewhere."""
    for branch, end in ends.items():
        known = there.find_tip(branch) or end
        goes_on = branch not in there.archive and is_descendant(store.objects, end, known)
        if known != end and not goes_on:
            return branch
    return None


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

    @property
    def is_sent(self) -> bool:
        """False for a ref that is only expected to be where it was."""
        return self.after != self.before


class PushUnit(NamedTuple):
    """Changes that are made together or not at all."""

    name: str
    """The ref here that is pushed."""

    changes: tuple[RefChange, ...]

    @property
    def tip(self) -> Oid | None:
        """The commit that a ref gets; None if refs are only deleted."""
        return next((each.after for each in self.changes if each.after), None)

    @property
    def is_litter(self) -> bool:
        """True if all that it does is to delete one ref."""
        return len(self.changes) == 1 and self.tip is None


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
    last = seen.find(kind, name) or seen.archive.get(name)
    if last is None:
        return kind == "threads" and _is_new_branch(objects, left.here)
    return is_descendant(objects, last, left.here)


def _is_new_branch(objects: ObjectStore, tip: Oid) -> bool:
    """Check whether *tip* is the first commit of a branch: whoever has the branch has that too."""
    with suppress(StoreDamaged):
        first = read_at(objects, tip)
        return first.record.event == "start" and bool(first.commit.parents)
    return False


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
    is_behind = is_descendant(objects, ended, here)
    return NotPushed(ref, "fetch-first" if is_behind else _apart(objects, here, ended), here, ended)


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
        # Beside an archive, which wins, its active ref tells nothing: plain git has pushed that.
        standing = _apart(objects, here, active) if ended is None else "unchanged"
        return NotPushed(ref, standing, here, ended or active)
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
    # git guesses the same where the config does not say.
    is_bare = store.config.get_flag("core.bare", default=os.path.basename(store.path) != ".git")
    if is_bare or any(read_shared(store, remote).rows()):
        return None
    here = read_shared(store)
    if threads:
        here = here.only(with_branches(store, [resolve_thread(store, text) for text in threads]))
    if not any(here.rows()):
        return None
    url = remote_url(store, remote, for_push=True)
    names = here.threads.keys() | here.archive.keys()
    return FirstPush(remote, url.shown, len(names), len(here.workflows))


# Push batches: send many units at once, and fewer at a time when the remote refuses them.
#
# The changes of a unit are sent apart only to a remote without atomic pushes; then the archive is
# created before the active ref is deleted. A hook that refuses one thread refuses the whole push,
# so a refused push is halved until the refused unit is alone. A forge may let nobody delete a ref:
# then the archive is created alone, as by a plain `git push`, and the active ref stays beside it.


class UnitResult(NamedTuple):
    unit: PushUnit
    reason: str | None
    """Why it was refused; None if it was done."""

    output: str
    hint: str = ""


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
    """Return the units of one change that is no deletion, which need no atomic push."""
    return [unit for unit in units if len(unit.changes) == 1 and not unit.is_litter]


def send_units(send: SendUnits, units: Sequence[PushUnit], first: PushReport) -> list[UnitResult]:
    """Return the result of each of *units*; send what the *first* push did not settle.

    The first push held the single units.
    """
    batches = _Batches(send)
    singles = batches.settle(single_units(units), first, atomic=False)
    moves = batches.send([unit for unit in units if len(unit.changes) > 1], atomic=True)
    kept = [_keep(each.unit) for each in moves if each.reason and _keep(each.unit) != each.unit]
    again = {each.unit.name: each for each in batches.send(kept, atomic=True) if not each.reason}
    moves = [again.get(each.unit.name, each) for each in moves]
    litter = [unit for unit in units if unit.is_litter]
    report = send(litter, atomic=False) if litter else first
    swept = [_judge(unit, report) for unit in litter]
    left = [UnitResult(_keep(each.unit), None, "") if each.reason else each for each in swept]
    return [*singles, *moves, *left]


def _keep(unit: PushUnit) -> PushUnit:
    """Return *unit* with the refs left as they are that it deletes."""
    kept = (each if each.after else each._replace(after=each.before) for each in unit.changes)
    return unit._replace(changes=tuple(kept))


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
            parts: list[Sequence[PushUnit]] = [suspects]
        else:
            # The remote does not say which unit it refused: push each half alone.
            middle = len(units) // 2
            parts = [units[:middle], units[middle:]]
        again = [
            each for part in parts if self._left > 0 for each in self.send(part, atomic=atomic)
        ]
        later = {each.unit.name: each for each in again}
        return [later.get(each.unit.name, each) for each in results]

    def _send_in_order(self, units: Sequence[PushUnit]) -> list[UnitResult]:
        """Push of each unit the ends of its branches, then its own ref, then what is deleted.

        What follows waits for what was accepted.
        """
        found: dict[str, UnitResult] = {}
        kept = set[str]()
        for turn in ("branches", "own", "deleted"):
            parts = [
                unit._replace(
                    changes=tuple(each for each in unit.changes if _turn_of(unit, each) == turn)
                )
                for unit in units
                if unit.name not in found or found[unit.name].reason is None
            ]
            sent = self.send([part for part in parts if part.changes], atomic=False)
            if turn == "deleted":
                kept = {each.unit.name for each in sent if each.reason}
            else:
                found |= {each.unit.name: each for each in sent}
        return [
            found[each.name]._replace(unit=_keep(each) if each.name in kept else each)
            for each in units
        ]


def _turn_of(unit: PushUnit, change: RefChange) -> str:
    if change.after is None:
        return "deleted"
    return "own" if change.ref == unit.name else "branches"


def _judge(unit: PushUnit, report: PushReport) -> UnitResult:
    sent = [change.ref for change in unit.changes if change.is_sent]
    told = [report.statuses.get(ref, _UNREPORTED) for ref in sent]
    reasons = [reason for reason in told if reason is not None]
    # The change that caused the refusal has the more specific reason.
    reasons.sort(key=_is_whole_push)
    return UnitResult(unit, reasons[0] if reasons else None, report.output)


def _is_whole_push(reason: str) -> bool:
    return any(word in reason for word in _WHOLE_PUSH)
