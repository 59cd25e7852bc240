"""`uwf push`: send threads and workflows to a remote.

Each ref is changed only from the value that the remote reported; what the remote has and this
store does not know is left alone.
"""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import NamedTuple, Protocol

from uwf_git.commands.caller import Caller
from uwf_git.commands.receive import BranchRules, Push, check_received
from uwf_git.commands.remote.push_plan import (
    FELL_WITH_OTHERS,
    REF_MOVED,
    NotPushed,
    PushPlan,
    PushUnit,
    RefChange,
    UnitResult,
    find_false_join,
    list_new_joins,
    plan_push,
    send_units,
    single_units,
    with_branches,
)
from uwf_git.commands.split import find_own_split
from uwf_git.commands.verify.history import Finding, find_hub_gap, heads_of_refs, list_beginnings
from uwf_git.errors import Conflict, Refused, StoreDamaged, UwfError, name_some
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.config import BadConfig, refuse_mirror, shared_umask
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.locks import RefLocked, find_held_lock
from uwf_git.store.objects.commit import Needed, damaged_commit, is_descendant, list_new_objects
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.refs import BadRef, list_refs
from uwf_git.store.remotes.incoming import (
    PackParcel,
    Parcel,
    PushReport,
    copy_objects,
    receive_objects,
)
from uwf_git.store.remotes.remotes import (
    CLAIMS,
    Remote,
    RemoteUrl,
    SharedRefs,
    choose_remote,
    list_unreadable,
    read_shared,
    remote_url,
    sort_refs,
    track,
)
from uwf_git.store.remotes.transport import Access, send_pack
from uwf_git.store.store import Store, find_git_dir, open_store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.naming import resolve_thread
from uwf_git.store.tidy import unite_packs
from uwf_git.surroundings import without_local_variables

_MOST_NAMED = 5
_LONGEST_OUTPUT = 500

# git's reasons, in several versions, when a ref no longer has the value that it reported before.
_RACES = (REF_MOVED, "failed to update ref", "cannot lock ref", "reference already exists")


# What git prints beside such a reason if it could not even take the lock of the ref.
_NOT_LOCKED = "Unable to create"


class Pushed(NamedTuple):
    remote: Remote
    pushed: list[RefChange]
    refused: list[UnitResult]
    left: list[NotPushed]
    """Refs that the remote has already, or has something else in."""

    damaged: list[tuple[str, StoreDamaged]]
    """Refs whose objects are not all here, or are of another format, and why."""

    warnings: tuple[str, ...] = ()
    """What the remote warns of, though it took what was pushed."""

    gap: Finding | None = None
    """How pushes may escape the rules of the remote, where that can be seen."""

    def standing(self, *standings: str) -> list[NotPushed]:
        """Return the refs that were not pushed for one of these reasons."""
        return [each for each in self.left if each.standing in standings]

    def failure(self) -> UwfError | None:
        """Return the worst error, which sets the exit status; None if everything was pushed."""
        remote = self.remote.name
        if self.damaged:
            ref, error = self.damaged[0]
            refs = [each for each, _error in self.damaged]
            return StoreDamaged(
                f"{name_some(refs, most=_MOST_NAMED)} could not be pushed to {remote}: "
                f"{error.message}",
                code="push-damaged",
                hint=error.hint
                if "format" in error.facts
                else f"`uwf verify {ref}` says what is wrong, and how to go on",
                remote=remote,
                refs=refs,
            )
        if self.refused:
            # A lock passes; what else was refused does not.
            refusal = next((x for x in self.refused if not _find_lock(x)), self.refused[0])
            if lock := _find_lock(refusal):
                return RefLocked(lock, remote=remote)
            refs = [each.unit.name for each in self.refused]
            output = refusal.output.replace("\n", "; ")[:_LONGEST_OUTPUT]
            return Refused(
                f"{remote} refused {name_some(refs, most=_MOST_NAMED)}: {refusal.reason}"
                + (f": {output}" if output else ""),
                code="push-refused",
                hint=refusal.hint
                or f"check it with `uwf verify {refusal.unit.name}`; if it is sound, ask the "
                f"owner of {remote} what it accepts",
                remote=remote,
                refs=refs,
            )
        if diverged := self.standing("diverged"):
            refs = [each.ref for each in diverged]
            return Conflict(
                f"{name_some(refs, most=_MOST_NAMED)}: here at {diverged[0].here}, at {remote} at "
                f"{diverged[0].there}; no push can move it from there",
                code="push-diverged",
                hint=f"`uwf fetch {remote}` says what to do",
                remote=remote,
                refs=refs,
                local=diverged[0].here,
                tracked=diverged[0].there,
            )
        if newer := self.standing("fetch-first"):
            refs = [each.ref for each in newer]
            return Conflict(
                f"{remote} has something of {name_some(refs, most=_MOST_NAMED)} that is not here",
                code="fetch-first",
                hint=f"`uwf fetch {remote}` brings it here, then push again; or it says why it "
                "does not",
                remote=remote,
                refs=refs,
            )
        return None


def push_remote(
    store: Store, caller: Caller, name: str | None, threads: Sequence[str] = ()
) -> Pushed:
    """Push every thread and workflow to the remote *name*; or only *threads* and their branches."""
    refuse_mirror(store.config)
    remote = choose_remote(store.config, name)
    here = read_shared(store)
    unreadable = list_unreadable(store)
    if threads:
        named = [resolve_thread(store, text) for text in threads]
        ids = with_branches(store, named, read_shared(store, remote))
        here = here.only(ids)
        unreadable = [ref for ref in unreadable if ref.rpartition("/")[2] in ids]
    url = remote_url(store, remote, for_push=True)
    push = _Push(store, remote, here, open_connection(store, caller, url))
    push.damaged.update((ref, BadRef(ref)) for ref in unreadable)
    return push.run()._replace(gap=_find_gap(url))


def _find_gap(url: RemoteUrl) -> Finding | None:
    if url.kind == "path" and (git_dir := find_git_dir(url.text)) is not None:
        # git has pushed there: what only we cannot read is no reason to fail now.
        with suppress(BadConfig, OSError):
            return find_hub_gap(git_dir)
    return None


class _SendParcel(Protocol):
    """Connects to the remote, and sends the parcel that *pack* makes by its refs."""

    def __call__(self, pack: PackParcel, *, atomic: bool) -> PushReport:
        """Push once."""


class _Push:
    """One push: the refs here, and the refs that the remote had when they were last seen."""

    def __init__(
        self, store: Store, remote: Remote, here: SharedRefs, connection: _SendParcel
    ) -> None:
        self.store, self.remote, self.here = store, remote, here
        self.seen = read_shared(store, remote)
        self.damaged: dict[str, StoreDamaged] = {}
        self._apart: list[UnitResult] = []
        self._connection = connection
        self._warnings: dict[str, None] = {}
        self._branches = BranchRules(Push(store, {}), store.objects)

    def _connect(self, pack: PackParcel, *, atomic: bool) -> PushReport:
        report = self._connection(pack, atomic=atomic)
        lines = report.output.splitlines()
        self._warnings |= dict.fromkeys(each for each in lines if each.startswith("warning: "))
        return report

    def run(self) -> Pushed:
        plan, report = self._plan_and_send()
        results = send_units(self._send, plan.units, report)
        results = [each for each in results if each.unit.name not in self.damaged]
        taken = [each.unit for each in results if each.reason is None]
        refused = [each for each in results if each.reason is not None and not _is_race(each)]
        refused += self._apart
        raced = [each.unit for each in results if each.reason is not None and _is_race(each)]
        left = [*plan.left, *map(_overtaken, raced)]
        there = {change.ref: change.after for unit in taken for change in unit.changes}
        there |= {each.ref: each.there for each in left if each.standing == "unchanged"}
        places = {ref.removeprefix("refs/"): to for ref, to in there.items()}
        moves = {ref: (self.seen.find(*ref.split("/", 1)), to) for ref, to in places.items()}
        try:
            track(self.store, self.remote, moves)
        except OSError as error:
            name = self.remote.name
            self._warnings[
                "warning: what it has now could not be noted here, "
                f"{error.filename}: {error.strerror}; later `uwf fetch {name}` does"
            ] = None
        pushed = [change for unit in taken for change in unit.changes if change.is_sent]
        damaged, warnings = sorted(self.damaged.items()), tuple(self._warnings)
        return Pushed(self.remote, pushed, refused, left, damaged, warnings)

    def _plan_and_send(self) -> tuple[PushPlan, PushReport]:
        """Plan by the refs of the remote; in the same connection send the units of one change."""
        plan = PushPlan([], [])

        def pack(refs: dict[str, Oid]) -> Parcel:
            nonlocal plan
            there = sort_refs(refs)[0]
            plan = plan_push(self.store.objects, self.here, there, seen=self.seen)
            units = [each for each in plan.units if self._is_sound(each.name, each.tip)]
            units = [each for each in units if not self._is_given_up(each)]
            early = {each.name: each for each in units if self._is_early(each, there)}
            units = [each for each in units if each.name not in early]
            left = [*plan.left, *map(_overtaken, early.values())]
            plan = PushPlan(self._bind(units, there), left)
            lost = [each for each in plan.left if each.standing == "damaged"]
            self.damaged |= {each.ref: damaged_commit(each.here, "is missing") for each in lost}
            return self._collect(single_units(plan.units), refs)

        report = self._connect(pack, atomic=False)
        return plan, report

    def _is_sound(self, ref: str, tip: Oid | None) -> bool:
        """Check that the newest commit of a thread can be read, or note the damage."""
        try:
            if tip is not None and ref.startswith((ACTIVE, ARCHIVE)):
                read_snapshot(self.store, tip)
        except StoreDamaged as error:
            self.damaged[ref] = error
        return ref not in self.damaged

    def _is_whole(self, thread: ThreadId) -> bool:
        """Check a thread that may be no part of this push, as `_is_sound`."""
        try:
            head = find_head(self.store, thread)
        except BadRef as error:
            self.damaged[error.facts["ref"]] = error
            return False
        if head is None:
            return True
        return self._is_sound((ARCHIVE if head.archived else ACTIVE) + thread, head.commit)

    def _is_early(self, unit: PushUnit, there: SharedRefs) -> bool:
        """Check whether *unit* begins a branch of a split that the remote neither has nor gets.

        The thread that has split is damaged here, or goes on otherwise there, as far as is known.
        """
        new, objects = _find_begun(unit), self.store.objects
        with suppress(StoreDamaged):  # told when its objects are collected
            at = find_own_split(read_snapshot(self.store, new)) if new else None
            while at is not None:
                thread, split = at.record.thread, at.commit.oid
                tip = there.find_tip(thread)
                known = () if tip is None else (tip, self.seen.find_tip(thread) or tip)
                if any(is_descendant(objects, each, split) for each in known):
                    return False
                if not self._is_whole(thread):
                    return True
                if tip is not None:
                    return not is_descendant(objects, split, tip)
                at = find_own_split(at)
        return False

    def _is_given_up(self, unit: PushUnit) -> bool:
        """Check whether *unit* begins a branch there whose thread goes on without it here."""
        new = _find_begun(unit)
        with suppress(StoreDamaged):  # told when its objects are collected
            update = RefUpdate(unit.name, None, new)
            return new is not None and self._branches.find_bad_branch(update, new) is not None
        return False

    def _bind(self, units: Sequence[PushUnit], there: SharedRefs) -> list[PushUnit]:
        """Let each thread go in one unit with the ends that it has joined, if they go.

        Somebody else may give a branch another end there meanwhile; a join of this one would be
        false. Where that has happened, the thread is refused.
        """
        into: dict[str, str] = {}
        self._apart = []
        for unit in units:
            known = next((each.before for each in unit.changes if each.before), None)
            if known is None or unit.tip is None or not unit.name.startswith((ACTIVE, ARCHIVE)):
                continue
            ends = list_new_joins(self.store, unit.tip, known)
            if (false := find_false_join(self.store, ends, there)) is not None:
                self._apart.append(_refuse_join(unit, false, ends[false]))
            else:
                into |= {ARCHIVE + branch: unit.name for branch in ends}
        left = set[str]()
        for apart in self._apart:
            name: str | None = apart.unit.name
            while name is not None:
                left.add(name)
                name = into.get(name)
        bound: dict[str, list[RefChange]] = {}
        for unit in units:
            around = unit.name
            while around in into:
                around = into[around]
            if unit.name not in left:
                bound.setdefault(around, []).extend(unit.changes)
        return [PushUnit(name, tuple(changes)) for name, changes in bound.items()]

    def _send(self, units: Sequence[PushUnit], *, atomic: bool) -> PushReport:
        """Send planned *units*; refuse those whose refs have moved at the remote since."""
        moved: dict[str, str | None] = {}

        def pack(refs: dict[str, Oid]) -> Parcel:
            current = [unit for unit in units if _is_current(unit, refs)]
            stale = [unit for unit in units if not _is_current(unit, refs)]
            moved.update((change.ref, REF_MOVED) for unit in stale for change in unit.changes)
            return self._collect(current, refs)

        report = self._connect(pack, atomic=atomic)
        return report._replace(statuses={**report.statuses, **moved})

    def _collect(self, units: Sequence[PushUnit], refs: dict[str, Oid]) -> Parcel:
        """Collect the objects that a remote with *refs* needs for *units*; skip damaged units."""
        had = set(refs.values())
        tips = [change.after for unit in units for change in unit.changes if change.after]
        had |= list_beginnings(
            self.store.objects, tips, had, heads_of_refs(self.store.objects, refs)
        )
        needed: dict[Needed, None] = {}
        changes: dict[str, Oid | None] = {}
        for unit in units:
            try:
                for change in unit.changes:
                    if change.after is not None:
                        found = list_new_objects(self.store.objects, change.after, had, needed)
                        needed.update(dict.fromkeys(found))
            except StoreDamaged as error:
                self.damaged[unit.name] = error
            else:
                sent = [change for change in unit.changes if change.is_sent]
                changes.update((change.ref, change.after) for change in sent)
        return Parcel(changes, list(needed))


def _refuse_join(unit: PushUnit, branch: ThreadId, end: Oid) -> UnitResult:
    thread = unit.name.rpartition("/")[2]
    return UnitResult(
        unit,
        f"it has joined branch {branch} at {end}, and the branch is elsewhere there",
        "",
        f"`uwf thread fork {thread}` keeps it as another thread, which can be pushed",
    )


def _is_current(unit: PushUnit, refs: dict[str, Oid]) -> bool:
    return all(refs.get(change.ref) == change.before for change in unit.changes)


def _is_race(result: UnitResult) -> bool:
    reason = result.reason or ""
    # The reason of a failed atomic push does not say why; the output does.
    why = f"{reason} {result.output}" if "atomic transaction failed" in reason else reason
    return any(words in why for words in _RACES) and _NOT_LOCKED not in _select_output(result)


def _find_lock(result: UnitResult) -> str:
    """Return the lock of a ref of the unit that another process holds; "" if none is held."""
    return find_held_lock(_select_output(result))


def _select_output(result: UnitResult) -> str:
    """Return what git printed about refs of the unit."""
    refs = [f"'{change.ref}'" for change in result.unit.changes]
    lines = result.output.splitlines()
    return "\n".join(line for line in lines if any(ref in line for ref in refs))


def _find_begun(unit: PushUnit) -> Oid | None:
    """Return the newest commit of the thread that *unit* begins at the remote, if it begins one."""
    is_new = unit.changes[0].before is None and unit.name.startswith((ACTIVE, ARCHIVE))
    return unit.tip if is_new else None


def _overtaken(unit: PushUnit) -> NotPushed:
    change = unit.changes[0]
    return NotPushed(unit.name, "fetch-first", change.after or change.before or Oid(""), None)


def open_connection(store: Store, caller: Caller, url: RemoteUrl) -> _SendParcel:
    """Return the way to *url*: git's protocol, or our own code where no git is installed."""
    access = Access(url, store.config, caller.environ)
    access.check_trusted(store)
    if access.is_served_here:
        return partial(push_locally, access, store.objects)
    return partial(send_pack, access, store.objects)


# Push to a store on this machine when no git is installed to receive it.
#
# As `git receive-pack` and a hub's pre-receive hook: the rules of a shared store judge the push
# as a whole before anything is stored. dulwich's own local push runs no hooks and lets deletions
# through.

_DECLINED = "the rules of a shared store do not allow it"


def push_locally(
    access: Access, objects: ObjectStore, pack: PackParcel, *, atomic: bool
) -> PushReport:
    del atomic  # The push is judged as a whole in any case.
    there = open_store(access.url.text, environ=without_local_variables(access.environ))
    refs = {f"refs/{kind}/{name}": oid for kind, name, oid in read_shared(there).rows()}
    refs |= {CLAIMS + name: oid for name, oid in list_refs(there.path, CLAIMS).items()}
    parcel = pack(refs)
    updates = [RefUpdate(name, refs.get(name), new) for name, new in parcel.changes.items()]
    if not updates:
        return PushReport({}, "")
    umask = partial(shared_umask, there.config)
    with umask(), ExitStack() as until_moved, receive_objects(there) as incoming:
        copy_objects(objects, parcel.objects, incoming)
        if refusals := check_received(there._replace(objects=incoming.objects), updates):
            output = "\n".join(f"{each.name}: {each.message}" for each in refusals)
            blamed = {each.name: _DECLINED for each in refusals}
            statuses: dict[str, str | None] = {
                each.name: blamed.get(each.name, FELL_WITH_OTHERS) for each in updates
            }
            return PushReport(statuses, output)
        incoming.move_into_store(until_moved)
        moved = there.refs.change({each.name: (each.old, each.new) for each in updates})
        statuses = {each.name: None if each.name in moved else REF_MOVED for each in updates}
    # Each push leaves a small pack, and nobody else may ever write there. The push is done.
    with umask(), suppress(OSError):
        unite_packs(there)
    return PushReport(statuses, "")
