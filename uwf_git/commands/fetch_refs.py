"""`uwf fetch`: what a remote has comes here.

Owns: the order receive, look, take in, track, reconcile.
Knows nothing of: who wins (reconcile.py), how it is transferred.
Always true: tracking refs name only commits that came whole; a local ref moves only under its
thread's lock, after a check, to a descendant; so a remote that lies, and a transfer that breaks
off, lose nothing here.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.check_arrivals import Arrival, pass_arrivals
from uwf_git.commands.reconcile import Settled, settle_steered, settle_thread, settle_workflow
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import Conflict, StoreDamaged, UwfError
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.descent import goes_on_from
from uwf_git.store.incoming import Incoming, receive_objects
from uwf_git.store.object_walk import list_needed
from uwf_git.store.refs import Oid
from uwf_git.store.remotes import Remote, choose_remote, remote_url
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import lock_thread
from uwf_git.store.thread_sides import Sides
from uwf_git.store.tracking import SharedRefs, read_shared, sort_refs, update_tracking


class SidesDiverged(Conflict):
    """Both sides went on, each its own way; both are kept."""

    code = "diverged"

    def __init__(self, remote: Remote, settled: Settled, *, others: int) -> None:
        kind, _slash, name = settled.ref.removeprefix("refs/").partition("/")
        what = f"workflow {name}" if kind == "workflows" else f"thread {name}"
        more = f" (and {others} more)" if others else ""
        super().__init__(
            f"{what} went on here, at {settled.local}, and at {remote.name}, at "
            f"{settled.tracked}{more}",
            hint=hint_for(settled),
            ref=settled.ref,
            local=settled.local,
            tracked=settled.tracked,
        )


class RefsRefused(StoreDamaged):
    """What a remote has was not taken over: it is not what it must be, or what is here is not."""

    code = "refs-refused"

    def __init__(self, remote: Remote, settled: Settled, *, others: int) -> None:
        trouble = settled.trouble
        more = f" (and {others} more)" if others else ""
        super().__init__(
            f"{settled.ref} of {remote.name} was not taken over: "
            f"{trouble.message if trouble else 'it is damaged'}{more}",
            hint=refusal_hint(settled),
            ref=settled.ref,
            commit=settled.tracked,
        )


class ThreadsBusy(Conflict):
    """Somebody works on threads that have moved at the remote."""

    code = "threads-busy"

    def __init__(self, error: UwfError, *, others: int) -> None:
        more = f" (and {others} more)" if others else ""
        super().__init__(error.message + more, hint=error.hint, **error.facts)


class Fetched(NamedTuple):
    """What a fetch did."""

    remote: Remote
    settled: list[Settled]
    """What happened to each that is not as it was."""

    busy: list[tuple[ThreadId, UwfError]]
    """Threads that somebody works on; the next fetch takes them over."""

    ignored: list[str]
    """Refs of the remote that mean neither a thread nor a workflow."""

    unchanged: int

    def of(self, event: str) -> list[Settled]:
        """Give those to which *event* happened."""
        return [each for each in self.settled if each.event == event]

    def failure(self) -> UwfError | None:
        """Give the error that the exit status comes from, the worst one; None if all went well."""
        refused, diverged = self.of("refused"), self.of("diverged")
        if refused:
            return RefsRefused(self.remote, refused[0], others=len(refused) - 1)
        if diverged:
            return SidesDiverged(self.remote, diverged[0], others=len(diverged) - 1)
        if self.busy:
            return ThreadsBusy(self.busy[0][1], others=len(self.busy) - 1)
        return None


def refusal_hint(settled: Settled) -> str:
    """Say what to do about something that was not taken over."""
    if settled.tracked is None and settled.trouble is not None:
        return settled.trouble.hint  # the damage is here
    return "nothing of yours has changed; it has to be put right where it came from"


def hint_for(settled: Settled) -> str:
    """Say what to type about something that has diverged."""
    kind, _slash, name = settled.ref.removeprefix("refs/").partition("/")
    if kind == "workflows":
        return (
            f"take theirs with `git update-ref {settled.ref} {settled.tracked} {settled.local}` in "
            "the store, then put yours again on top"
        )
    return (
        f"both are kept; `uwf thread fork {name} --at {settled.local}` makes yours a thread of its "
        "own, and the other goes on as it is there"
    )


def fetch_remote(store: Store, caller: Caller, name: str | None) -> Fetched:
    """Fetch what the remote *name* has, and take over what is ahead of what is here.

    Raises:
        NoSuchRemote, WhichRemote, BadRemoteUrl: there is none to fetch from.
        RemoteFailed: it cannot be reached, or breaks off; nothing has changed.
    """
    remote = choose_remote(store.config, name)
    received = _Received(store, remote)
    with receive_objects(store) as incoming:
        _transfer(store, caller, received, incoming)
        lies = received.drop_what_is_not_whole(incoming)
        if len(lies) < len(received.wanted):
            incoming.take_in()
    update_tracking(store, remote, seen=received.seen, now=received.there)
    return _reconcile(store, caller, received, lies)


def _transfer(store: Store, caller: Caller, received: "_Received", incoming: Incoming) -> None:
    from uwf_git.store.transport import (  # noqa: PLC0415 (dulwich's clients cost 70 ms)
        Access,
        Wanted,
        fetch_pack,
    )

    url = remote_url(store, received.remote)
    access = Access(url, store.config, caller.environ)
    fetch_pack(access, lambda refs: Wanted(*received.choose(refs)), incoming)


class _Received:
    """What is here, what was seen, and what the remote now says."""

    def __init__(self, store: Store, remote: Remote) -> None:
        self.store, self.remote = store, remote
        self.seen = read_shared(store, remote)
        self.here = read_shared(store)
        self.there = SharedRefs({}, {}, {})
        self.ignored: list[str] = []
        self.wanted: dict[tuple[str, str], Oid] = {}

    def choose(self, refs: dict[str, Oid]) -> tuple[list[Oid], list[Oid]]:
        """Give the commits to ask for, and those that the remote may know we have."""
        self.there, self.ignored = sort_refs(refs)
        haves: dict[Oid, None] = {}
        shared: dict[Oid, None] = {}
        for kind, name, oid in self.there.rows():
            ours = self._ours(kind, name)
            if oid in ours:
                shared[oid] = None
            elif not any(goes_on_from(self.store.objects, each, oid) for each in ours):
                self.wanted[kind, name] = oid
                haves.update(dict.fromkeys(ours))
        return list(dict.fromkeys(self.wanted.values())), [*haves, *shared]

    def _ours(self, kind: str, name: str) -> list[Oid]:
        """Give what we have of a thread or a workflow, the likeliest to be known there first."""
        kinds = ("workflows",) if kind == "workflows" else ("archive", "threads")
        found = [side.find(each, name) for side in (self.seen, self.here) for each in kinds]
        return [oid for oid in found if oid is not None]

    def drop_what_is_not_whole(self, incoming: Incoming) -> list[Settled]:
        """Leave the refs out whose objects did not all come, and say so of each."""
        had = {oid for side in (self.here, self.seen) for _kind, _name, oid in side.rows()}
        whole: set[Any] = set()
        lies = []
        for (kind, name), oid in self.wanted.items():
            try:
                whole.update(list_needed(incoming.objects, oid, had, whole))
            except StoreDamaged as error:
                ref = f"refs/{kind}/{name}"
                trouble = Trouble(error.message, "see `git fsck` there", ref, oid)
                lies.append(Settled("refused", ref, self.here.find(kind, name), oid, trouble))
                self._forget(kind, name)
        return lies

    def _forget(self, kind: str, name: str) -> None:
        """Believe what was seen before of a ref that is not what it says."""
        folder = getattr(self.there, kind)
        before = self.seen.find(kind, name)
        if before is None:
            del folder[name]
        else:
            folder[name] = before


def _reconcile(store: Store, caller: Caller, received: _Received, lies: list[Settled]) -> Fetched:
    remote, settled = received.remote, list(lies)
    busy: list[tuple[ThreadId, UwfError]] = []
    # With those that are in two places here: what is left of a move that was cut short.
    threads = {*received.there.threads, *received.there.archive}
    threads |= received.here.threads.keys() & received.here.archive.keys()
    moved = _moved_threads(store, remote, threads)
    passed = pass_arrivals(store, list(_arrivals(store, moved)))
    for thread in moved:
        try:
            with lock_thread(store, thread, since_ms=caller.now_ms()):
                settled.append(settle_thread(store, remote, thread, passed=passed))
        except Conflict as error:
            steered = settle_steered(store, remote, thread, passed=passed)
            if steered is None:
                busy.append((thread, error))
            else:
                settled.append(steered)
    settled += [settle_workflow(store, remote, name) for name in received.there.workflows]
    changed = [each for each in settled if each.event != "unchanged"]
    unchanged = len(threads) - len(moved) + len(settled) - len(changed)
    return Fetched(remote, changed, busy, received.ignored, unchanged)


def _moved_threads(store: Store, remote: Remote, threads: set[str]) -> dict[ThreadId, Sides]:
    """Give the threads that are not the same on both sides, found without reading a commit."""
    here, there = read_shared(store), read_shared(store, remote)
    sides = {
        ThreadId(name): Sides(
            here.threads.get(name),
            here.archive.get(name),
            there.threads.get(name),
            there.archive.get(name),
        )
        for name in sorted(threads)
    }
    return {thread: each for thread, each in sides.items() if not each.is_settled}


def _arrivals(store: Store, moved: dict[ThreadId, Sides]) -> Iterator[Arrival]:
    """Give what is to be taken over, as far as that can be told without the threads' locks."""
    for thread, sides in moved.items():
        tip = sides.there_archived or sides.there_active
        known = sides.active
        if sides.archived is not None or tip is None:
            continue
        if known is None or goes_on_from(store.objects, tip, known):
            yield Arrival(thread, known, tip, archived=sides.there_archived is not None)
