"""`uwf push`: what is here goes to a remote.

Owns: what is told of each ref that was pushed, or could not be.
Knows nothing of: which changes are allowed (push_plan.py), how they are grouped.
Always true: each ref is changed only from the value that the remote said it had; what the remote
has and we do not know stays; every answer of the remote is looked at.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.push_batches import Answer, Done, send_units, single_units
from uwf_git.commands.push_plan import Change, Left, Plan, Unit, plan_push, restrict
from uwf_git.errors import Conflict, Refused, StoreDamaged, UwfError, name_some
from uwf_git.store.heads import resolve_thread
from uwf_git.store.object_walk import Needed, list_needed
from uwf_git.store.refs import BadRef, Oid
from uwf_git.store.remotes import Remote, choose_remote, remote_url
from uwf_git.store.store import Store
from uwf_git.store.tracking import SharedRefs, list_unreadable, read_shared, sort_refs, track

_MOST_NAMED = 5
_LONGEST_SAID = 500
_MOVED = "incorrect old value provided"

# What git says, in several versions, when a ref is no longer what it said before.
_RACES = (_MOVED, "failed to update ref", "cannot lock ref", "reference already exists")

_NOTHING = "atomic transaction failed"

Choose = Callable[[dict[str, Oid]], dict[str, Oid | None]]
Send = Callable[[Choose, dict[Needed, None], bool], Answer]


class FetchFirst(Conflict):
    """The remote has what we do not know."""

    code = "fetch-first"

    def __init__(self, remote: Remote, left: Sequence[Left]) -> None:
        super().__init__(
            f"{remote.name} has something newer of {_named([each.ref for each in left])}",
            hint=f"`uwf fetch {remote.name}` brings it here; then push again",
            remote=remote.name,
            refs=[each.ref for each in left],
        )


class PushDiverged(Conflict):
    """Both sides went on, each its own way."""

    code = "diverged"

    def __init__(self, remote: Remote, left: Sequence[Left]) -> None:
        first = left[0]
        _refs, kind, name = first.ref.split("/", 2)
        fork = f"`uwf thread fork {name} --at {first.here}` makes yours a thread of its own"
        super().__init__(
            f"{_named([each.ref for each in left])}: here at {first.here}, at {remote.name} at "
            f"{first.there}; neither goes on from the other",
            hint=fork if kind != "workflows" else f"`uwf fetch {remote.name}` says what to do",
            remote=remote.name,
            refs=[each.ref for each in left],
            local=first.here,
            tracked=first.there,
        )


class PushRefused(Refused):
    """The remote would not have it."""

    code = "push-refused"

    def __init__(self, remote: Remote, refused: Sequence[Done]) -> None:
        first = refused[0]
        said = first.said.replace("\n", "; ")[:_LONGEST_SAID]
        super().__init__(
            f"{remote.name} refused {_named([each.unit.name for each in refused])}: {first.reason}"
            + (f": {said}" if said else ""),
            hint=f"`uwf verify {first.unit.name}` says whether it is whole; what {remote.name} "
            "lets in is for its owner to say",
            remote=remote.name,
            refs=[each.unit.name for each in refused],
        )


class PushDamaged(StoreDamaged):
    """What was to be sent is not all here."""

    code = "push-damaged"

    def __init__(self, remote: Remote, damaged: Sequence[tuple[str, str]]) -> None:
        super().__init__(
            f"{_named([ref for ref, _why in damaged])} could not be pushed to {remote.name}: "
            f"{damaged[0][1]}",
            hint=f"`uwf verify {damaged[0][0]}` says what is missing",
            remote=remote.name,
            refs=[ref for ref, _why in damaged],
        )


def _named(refs: Sequence[str]) -> str:
    return name_some(refs, most=_MOST_NAMED)


class Pushed(NamedTuple):
    """What a push did."""

    remote: Remote
    pushed: list[Change]
    refused: list[Done]
    left: list[Left]
    """What was not pushed since the remote has it already, or has something else."""

    damaged: list[tuple[str, str]]
    """Refs whose objects are not all here, and why."""

    def standing(self, *standings: str) -> list[Left]:
        """Give what was left for one of these reasons."""
        return [each for each in self.left if each.standing in standings]

    def failure(self) -> UwfError | None:
        """Give the error that the exit status comes from, the worst one; None if all went well."""
        if self.damaged:
            return PushDamaged(self.remote, self.damaged)
        if self.refused:
            return PushRefused(self.remote, self.refused)
        if diverged := self.standing("diverged"):
            return PushDiverged(self.remote, diverged)
        if newer := self.standing("fetch-first"):
            return FetchFirst(self.remote, newer)
        return None


def push_remote(
    store: Store, caller: Caller, name: str | None, threads: Sequence[str] = ()
) -> Pushed:
    """Push every thread and workflow to the remote *name*; or only *threads*.

    Raises:
        NoSuchRemote, WhichRemote, BadRemoteUrl, SeveralPushUrls: there is none to push to.
        NoSuchThread, AmbiguousThread, NotAThreadId: one of *threads* means none.
        RemoteFailed: it cannot be reached, or breaks off.
    """
    remote = choose_remote(store.config, name)
    here = read_shared(store)
    unreadable = list_unreadable(store)
    if threads:
        ids = [resolve_thread(store, text) for text in threads]
        here = restrict(here, ids)
        unreadable = [ref for ref in unreadable if ref.rpartition("/")[2] in ids]
    push = _Push(store, caller, remote, here)
    push.damaged.update((ref, BadRef(ref).message) for ref in unreadable)
    return push.run()


class _Push:
    """One push: what is here, and what the remote said when it was first asked."""

    def __init__(self, store: Store, caller: Caller, remote: Remote, here: SharedRefs) -> None:
        self.store, self.remote, self.here = store, remote, here
        self.seen = read_shared(store, remote)
        self.plan: Plan | None = None
        self.damaged: dict[str, str] = {}
        self._send = _sender(store, caller, remote)

    def run(self) -> Pushed:
        """Push, and note what the remote now has."""
        first = self.send(None, atomic=False)
        plan = self.plan or Plan([], [])
        answered = send_units(self.send, plan.units, first)
        done = [each for each in answered if each.unit.name not in self.damaged]
        taken = [each.unit for each in done if each.reason is None]
        refused = [each for each in done if each.reason is not None and not _is_race(each)]
        raced = [each.unit for each in done if each.reason is not None and _is_race(each)]
        left = [*plan.left, *map(_overtaken, raced)]
        self._track(taken, left)
        pushed = [change for unit in taken for change in unit.changes]
        return Pushed(self.remote, pushed, refused, left, sorted(self.damaged.items()))

    def send(self, units: Sequence[Unit] | None, *, atomic: bool) -> Answer:
        """Send *units*; before the remote was ever asked (None), plan, and send what stands alone.

        What moved there since the plan was made is not sent, and counts as refused.
        """
        moved: dict[str, str | None] = {}
        needed: dict[Needed, None] = {}

        def choose(refs: dict[str, Oid]) -> dict[str, Oid | None]:
            if self.plan is None:
                there = sort_refs(refs)[0]
                self.plan = plan_push(self.store.objects, self.here, there, seen=self.seen)
                lost = [each for each in self.plan.left if each.standing == "damaged"]
                self.damaged |= {each.ref: f"commit {each.here} is missing" for each in lost}
            had = set(refs.values())
            chosen = single_units(self.plan.units) if units is None else units
            sent = []
            for unit in chosen:
                if any(refs.get(change.ref) != change.before for change in unit.changes):
                    moved.update(dict.fromkeys((each.ref for each in unit.changes), _MOVED))
                elif self._collect(unit, had, needed):
                    sent.append(unit)
            return {change.ref: change.after for unit in sent for change in unit.changes}

        answer = self._send(choose, needed, atomic)
        return answer._replace(statuses={**answer.statuses, **moved})

    def _collect(self, unit: Unit, had: set[Oid], needed: dict[Needed, None]) -> bool:
        """Add what the other side needs for *unit* to *needed*; no if it is not all here."""
        try:
            for change in unit.changes:
                if change.after is not None:
                    found = list_needed(self.store.objects, change.after, had, needed)
                    needed.update(dict.fromkeys(found))
        except StoreDamaged as error:
            self.damaged[unit.name] = error.message
            return False
        return True

    def _track(self, units: Sequence[Unit], left: Sequence[Left]) -> None:
        there = {change.ref: change.after for unit in units for change in unit.changes}
        there |= {each.ref: each.there for each in left if each.standing == "unchanged"}
        for ref, to in there.items():
            place = ref.removeprefix("refs/")
            kind, _slash, name = place.partition("/")
            seen = self.seen.find(kind, name)
            if seen != to:
                track(self.store, self.remote, place, seen=seen, to=to)


def _is_race(done: Done) -> bool:
    reason = done.reason or ""
    # Of all or nothing it says only on the side why it was nothing.
    why = f"{reason} {done.said}" if _NOTHING in reason else reason
    return any(words in why for words in _RACES)


def _overtaken(unit: Unit) -> Left:
    change = unit.changes[0]
    return Left(unit.name, "fetch-first", change.after or change.before or Oid(""), None)


def _sender(store: Store, caller: Caller, remote: Remote) -> Send:
    """Give the way to *remote*: through git's protocol, or where there is no git, by ourselves."""
    from uwf_git.store.transport import (  # noqa: PLC0415 (dulwich's clients cost 70 ms)
        Access,
        AtomicUnsupported,
        send_pack,
    )

    url = remote_url(store, remote, for_push=True)
    access = Access(url, store.config, caller.environ)
    if access.is_served_here:
        from uwf_git.commands.push_locally import (  # noqa: PLC0415 (brings all checks along)
            push_locally,
        )

        return lambda choose, needed, _atomic: push_locally(store, access, choose, needed)

    def send(choose: Choose, needed: dict[Needed, None], atomic: bool) -> Answer:  # noqa: FBT001 (Send says so)
        try:
            sent = send_pack(access, choose, lambda: (store.objects, list(needed)), atomic=atomic)
        except AtomicUnsupported:
            return Answer({}, "", is_atomic=False)
        return Answer(sent.statuses, sent.said)

    return send
