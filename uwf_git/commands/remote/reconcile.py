"""Reconcile the refs of a thread or workflow here with the tracking refs of a remote.

The caller holds the thread's lock. A local ref only moves to a descendant that was checked; if both
sides have commits of their own, both are kept.

| here | there | result |
|---|---|---|
| nothing | active or archived | created here |
| active | active | the descendant wins; neither: diverged |
| active | archived | the archive wins if it descends; else diverged |
| archived | active | the archive stays if it descends: a push ends it there; else diverged |
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple, TypeVar

from uwf_git.agents.limited_fork import LimitedRunDied, LimitHit, RunLimits, run_limited
from uwf_git.commands.agent_run.runs import check_nothing_runs, forget_run, is_finished
from uwf_git.commands.family import STRANGER_HINT, Strangers
from uwf_git.commands.verify.history import Finding, KnownHeads, heads_of_store
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.commands.verify.puts import check_puts
from uwf_git.commands.verify.thread import Claim, RefKind, ThreadChecks
from uwf_git.errors import Conflict, StoreDamaged
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.store.objects.commit import DEFAULT_BLOB_BYTES, is_descendant, read_commit
from uwf_git.store.objects.objects import has_object
from uwf_git.store.remotes.incoming import bytes_to_check, read_receive_limits
from uwf_git.store.remotes.remotes import Remote, Sides, read_sides
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, Head, HeadMoved, advance_head, archive_head
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.local_files import forget_lock, forget_workdir, get_run_dir
from uwf_git.store.workflows import PUT, WORKFLOWS, list_names, read_sources, walk_own_versions

# Check what a remote sent in a child process with limits, as a hub checks a push.
#
# A few kilobytes of JSON can take gigabytes as Python values.

# For blobs of up to the usual size; larger ones take more.
_MEMORY_BYTES = 320 * 1024 * 1024


def first_finding(store: Store, check: Callable[[], Iterator[Finding]]) -> Finding | None:
    """Return the first finding of *check*, which runs in a child; None without any."""
    limits = read_receive_limits(store.config)
    more = max(limits.most_blob_bytes - DEFAULT_BLOB_BYTES, 0)
    memory = _MEMORY_BYTES + bytes_to_check(store.objects, more)
    try:
        found = run_limited(
            lambda: list(islice(check(), 1)),
            limits=RunLimits(memory, limits.timeout_s, limits.timeout_s),
            what="the check of what came",
        )
    except LimitHit as hit:
        setting = "uwf.maxBlobSize" if hit.facts["limit"] == "memory" else "uwf.receiveTimeout"
        return Finding(hit.message, f"if it is right: `git config --global {setting} NUMBER`")
    except (LimitedRunDied, StoreDamaged) as error:
        return Finding(error.message, error.hint or "see `git fsck`")
    return Finding(*found[0]) if found else None


# Check many fetched threads together, so that shared nodes are checked once and in one child.
#
# A thread that does not pass must be checked alone to learn why: one finding fails its whole
# batch.

MOST_FAILED = 300
"""After so many checks that failed, refs of the same fetch that have not passed are not read."""

_MOST_AT_ONCE = 100
_PARENT = b"\nUwf-Parent-Thread: "

_NOT_READ = Finding(
    f"it was not read, for {MOST_FAILED} checks of other refs of the same fetch had failed",
    "repair the refs that were refused at the remote, or delete them there; then fetch again",
)

T = TypeVar("T")


class Arrival(NamedTuple):
    """A fetched thread: its commit here, if it has one, and its commit at the remote."""

    thread: ThreadId
    known: Oid | None
    tip: Oid
    archived: bool

    @property
    def ref(self) -> str:
        return (ARCHIVE if self.archived else ACTIVE) + self.thread


class Verdicts(NamedTuple):
    passed: set[Arrival]
    refused: dict[Arrival, Finding]


def judge_arrivals(store: Store, arrivals: Iterable[Arrival]) -> Verdicts:
    """Check threads, many in one child; what a passed thread shares is trusted."""
    tips: dict[ThreadId, Oid] = {}
    heads = heads_of_store(store, tips)

    def trust(passed: Arrival) -> None:
        tips[passed.thread] = passed.tip
        heads.trust(passed.tip)

    # What is here goes on whatever else is offered, and branches come after the threads that they
    # share most of their history with.
    ordered = sorted(arrivals, key=lambda each: (each.known is None, _has_parent(store, each)))
    refused = judge_together(store, ordered, partial(check_arrivals, store, heads=heads), trust)
    return Verdicts(set(ordered) - refused.keys(), refused)


def judge_together(
    store: Store,
    items: Sequence[T],
    check: Callable[[Sequence[T]], Iterator[Finding]],
    accept: Callable[[T], object] = lambda _item: None,
) -> dict[T, Finding]:
    """Return why items are refused; each other item was accepted before the next was checked.

    Items that do not pass together are halved, until too many checks have failed: of endless bad
    refs, few are looked at.
    """
    refused: dict[T, Finding] = {}
    failed = 0
    starts = range(0, len(items), _MOST_AT_ONCE)
    waiting = [items[start : start + _MOST_AT_ONCE] for start in reversed(starts)]
    while waiting:
        part = waiting.pop()
        finding = first_finding(store, partial(check, part)) if failed < MOST_FAILED else _NOT_READ
        failed += finding is not None
        if finding is None:
            for each in part:
                accept(each)
        elif len(part) == 1:
            refused[part[0]] = finding
        else:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
    return refused


def check_arrivals(
    store: Store, batch: Sequence[Arrival], heads: KnownHeads | None = None
) -> Iterator[Finding]:
    """Check the arrivals in one run; what they share with *heads*, or those here, is trusted."""
    known = heads or heads_of_store(store)
    checks = ThreadChecks(TreeChecks(store), known)
    tips = {each.thread: each.tip for each in batch}
    strangers = Strangers(store.objects, lambda thread: [known.find(thread), tips.get(thread)])
    for each in batch:
        place: RefKind = "archive" if each.archived else "active"
        yield from checks.check(Claim(each.ref, each.thread, each.tip, place), known=each.known)
        stranger = strangers.find(each.thread, each.tip, is_known=each.known is not None)
        if stranger is not None:
            yield Finding(stranger, STRANGER_HINT, each.ref, each.tip)
    yield from checks.finish()


def _has_parent(store: Store, arrival: Arrival) -> bool:
    with suppress(StoreDamaged):
        return _PARENT in read_commit(store.objects, arrival.tip).message
    return False  # reported by the check


ReconcileEvent = Literal["unchanged", "created", "moved", "archived", "diverged", "refused"]


class Reconciled(NamedTuple):
    event: ReconcileEvent
    ref: str
    local: Oid | None = None
    """The commit of the ref here, before."""

    tracked: Oid | None = None

    finding: Finding | None = None

    hint: str = ""
    """Of what has diverged: what to type."""

    @property
    def thread(self) -> ThreadId:
        """The thread that it is about, if it is about none of the workflows."""
        return ThreadId(self.ref.rpartition("/")[2])


def reconcile_thread(
    store: Store, remote: Remote, thread: ThreadId, *, passed: Container[Arrival] = ()
) -> Reconciled:
    """Reconcile *thread* with *remote*; *passed* were checked, and the caller holds its lock."""
    try:
        sides = read_sides(store, remote, thread)
        if sides.archived is not None:
            return _reconcile_archived(store, thread, sides, sides.archived)
        if sides.there is not None:
            is_archived = sides.there == sides.there_archived
            arrival = Arrival(thread, sides.active, sides.there, is_archived)
            return _reconcile_arrival(store, arrival, passed)
    except StoreDamaged as error:
        finding = Finding(error.message, error.hint or "see `git fsck`", ACTIVE + thread)
        return Reconciled("refused", ACTIVE + thread, finding=finding)
    return Reconciled("unchanged", ACTIVE + thread, sides.active)


def take_over_steering(
    store: Store, remote: Remote, thread: ThreadId, *, passed: Container[Arrival] = ()
) -> Reconciled | None:
    """Take over steering commits (a pause, a patch) of *remote* while an agent works here.

    Needs no lock: the agent's step is recorded on top. None if the remote has other commits, or
    another process moved the thread.
    """
    with suppress(HeadMoved, StoreDamaged):
        sides = read_sides(store, remote, thread)
        here, there = sides.active, sides.there_active
        if here is None or there is None or here == there or sides.archived or sides.there_archived:
            return None
        if not is_descendant(store.objects, there, here):
            return None
        arrival = Arrival(thread, here, there, archived=False)
        if arrival not in passed and _find_first(store, arrival):
            return None
        if read_snapshot(store, here).turn_start == read_snapshot(store, there).turn_start:
            advance_head(store, Head(thread, here, archived=False), there)
            return Reconciled("moved", arrival.ref, here, there)
    return None


def _reconcile_archived(store: Store, thread: ThreadId, sides: Sides, archived: Oid) -> Reconciled:
    ref, other = ARCHIVE + thread, sides.active or sides.there
    if sides.active is not None and is_descendant(store.objects, archived, sides.active):
        # Left by an interrupted archiving, or pushed by plain git.
        store.refs.delete(ACTIVE + thread, seen=sides.active)
        other = sides.there
    if other is None or is_descendant(store.objects, archived, other):
        return Reconciled("unchanged", ref, archived)
    _check_is_here(store, ref, archived)
    return Reconciled("diverged", ref, archived, other)


def _reconcile_arrival(store: Store, arrival: Arrival, passed: Container[Arrival]) -> Reconciled:
    thread, here, there, archived = arrival
    ref = arrival.ref
    if here is not None and not is_descendant(store.objects, there, here):
        _check_is_here(store, ACTIVE + thread, here)
        read_snapshot(store, here)  # damage here is told, with the way back
        if not archived and is_descendant(store.objects, here, there):
            return Reconciled("unchanged", ref, here, there)
        # Refuse what is no history of this thread: a fork would not help.
        finding = _find_first(store, arrival._replace(known=None))
        return Reconciled("diverged" if finding is None else "refused", ref, here, there, finding)
    if here == there and not archived:
        return Reconciled("unchanged", ref, here, there)
    if arrival not in passed:
        finding = _find_first(store, arrival)
        if finding is not None:
            return Reconciled("refused", ref, here, there, finding)
    if here is None:
        if not store.refs.create(ref, there):
            raise HeadMoved(thread)
        # The thread is new here, so its lock file was made by this fetch.
        forget_lock(store, thread)
        return Reconciled("created", ref, None, there)
    head = Head(thread, here, archived=False)
    check_no_work_waits(store, head)
    if not archived:
        advance_head(store, head, there)
        return Reconciled("moved", ref, here, there)
    archive_head(store, head, there)
    forget_run(store, thread, here)
    forget_workdir(store, thread)
    forget_lock(store, thread)
    return Reconciled("archived", ref, here, there)


def _check_is_here(store: Store, ref: str, oid: Oid) -> None:
    if not has_object(store.objects, oid):
        raise StoreDamaged(
            f"{ref} is at {oid}, and that commit is missing",
            code="tip-lost",
            hint=f"if `git fsck --lost-found` does not find it: `git update-ref -d {ref}` in the "
            "store, and the next `uwf fetch` takes over what the remote has",
            ref=ref,
            commit=oid,
        )


def check_no_work_waits(store: Store, head: Head) -> None:
    """Check that moving the thread loses no agent's work; the caller holds its lock."""
    snapshot = read_snapshot(store, head.commit)
    check_nothing_runs(store, snapshot)
    if is_finished(get_run_dir(store, head.thread, snapshot.turn_start)):
        raise Conflict(
            f"thread {head.thread} has a finished run that is not recorded yet",
            code="run-unrecorded",
            hint=f"`uwf thread step {head.thread}` records it",
            thread=head.thread,
        )


def _find_first(store: Store, arrival: Arrival) -> Finding | None:
    return first_finding(store, partial(check_arrivals, store, [arrival]))


def reconcile_workflow(
    store: Store,
    remote: Remote,
    name: str,
    *,
    passed: Container[tuple[str, Oid]] = (),
    taken: dict[str, str] | None = None,
) -> Reconciled:
    """Reconcile the workflow *name* with *remote*, again if another process adds a version.

    Workflows in *passed* were checked before. *taken* has the names here, by their folded form, and
    gets new names.
    """
    if taken is None:
        taken = {fold_workflow_name(known): known for known in list_names(store)}
    ref = WORKFLOWS + name
    try:
        here = store.refs.find(ref)
        there = store.refs.find(f"{remote.tracking}workflows/{name}")
        if there is None or here == there:
            return Reconciled("unchanged", ref, here, there)
        event = "created" if here is None else _compare_versions(store, name, here, there)
        if event in {"unchanged", "diverged"}:
            return Reconciled(event, ref, here, there)
        known = taken.get(fold_workflow_name(name), name)
        if here is None and known != name:
            why = _same_in_another_case(remote, name, known)
            return Reconciled("diverged", ref, None, there, why)
        finding = None
        if (ref, there) not in passed:
            finding = first_finding(store, partial(check_puts, store, [(ref, there, None)]))
    except StoreDamaged as error:
        finding = Finding(error.message, error.hint or "see `git fsck`", ref)
        return Reconciled("refused", ref, finding=finding)
    if finding is not None:
        return Reconciled("refused", ref, here, there, finding)
    if here is None:
        done = store.refs.create(ref, there)
    else:
        done = store.refs.advance(ref, seen=here, to=there)
    if not done:
        return reconcile_workflow(store, remote, name)
    taken[fold_workflow_name(name)] = name
    return Reconciled(event, ref, here, there)


def _compare_versions(store: Store, name: str, here: Oid, there: Oid) -> ReconcileEvent:
    """Compare histories of a workflow; the same, put here and there, differs in times alone.

    A removal or rollback is never the same: it was decided, and may have a reason.
    """
    if is_descendant(store.objects, there, here):
        return "moved"
    if is_descendant(store.objects, here, there):
        return "unchanged"
    _check_is_here(store, WORKFLOWS + name, here)
    theirs, ours = (
        [
            (each.event, each.workflow, read_sources(store.objects, each.commit))
            for each in walk_own_versions(store, name, *tips)
        ]
        for tips in ((there, here), (here, there))
    )
    rest = iter(theirs)
    return "moved" if all(each[0] == PUT and each in rest for each in ours) else "diverged"


def _same_in_another_case(remote: Remote, name: str, known: str) -> Finding:
    return Finding(
        f"it differs from {known}, which is here, in case only",
        f"to take {name}: put {known} under another name, if you need it, "
        f"`git update-ref -d {WORKFLOWS}{known}` in the store, then fetch again; if the remote has "
        f"both, delete one there first: `git push {remote.name} :{WORKFLOWS}{known}` in the store",
    )
