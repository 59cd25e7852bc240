"""Reconcile the refs of a thread or workflow here with the tracking refs of a remote.

The caller holds the thread's lock. A local ref only moves to a descendant that was checked; if both
sides have commits of their own, both are kept.

| here | there | result |
|---|---|---|
| nothing | active or archived | created here |
| active | active | the descendant wins; neither: diverged |
| active | archived | the archive wins if it descends; else diverged |
| archived | active | the archive stays; a push repairs the remote |
"""

from collections.abc import Container, Mapping
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple

from uwf_git.commands.agent_run.runs import check_nothing_runs, forget_run, is_finished
from uwf_git.commands.remote.arrivals import Arrival, check_arrivals, first_finding
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.puts import check_puts
from uwf_git.errors import Conflict, StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.store.objects.walk import has_object, is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import Remote
from uwf_git.store.remotes.thread_sides import Sides, read_sides
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, Head, HeadMoved, advance_head, archive_head
from uwf_git.store.threads.local_files import forget_workdir
from uwf_git.store.threads.lock import forget_lock
from uwf_git.store.threads.run_dir import get_run_dir
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.store.workflows.registry import WORKFLOWS, list_names

ReconcileEvent = Literal["unchanged", "created", "moved", "archived", "diverged", "refused"]


class RunUnrecorded(Conflict):
    """An agent has finished, and its engine died before it recorded the step."""

    code = "run-unrecorded"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} has a finished run that is not recorded yet",
            hint=f"`uwf thread step {thread}` records it",
            thread=thread,
        )


class Reconciled(NamedTuple):
    event: ReconcileEvent
    ref: str
    local: Oid | None = None
    """The commit of the ref here, before."""

    tracked: Oid | None = None

    finding: Finding | None = None

    joined_by: "Reconciled | None" = None
    """The outermost thread that has diverged as well, and has joined this one here."""

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
        if sides.there_archived is not None:
            arrival = Arrival(thread, sides.active, sides.there_archived, archived=True)
            return _reconcile_arrival(store, arrival, passed)
        if sides.there_active is not None:
            arrival = Arrival(thread, sides.active, sides.there_active, archived=False)
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
        bases = {read_snapshot(store, each).turn_start for each in (here, there)}
        if len(bases) == 1:
            advance_head(store, Head(thread, here, archived=False), there)
            return Reconciled("moved", arrival.ref, here, there)
    return None


def _reconcile_archived(store: Store, thread: ThreadId, sides: Sides, archived: Oid) -> Reconciled:
    ref = ARCHIVE + thread
    active = sides.active
    if active is not None and is_descendant(store.objects, archived, active):
        # Left by an interrupted archiving, or pushed by plain git.
        store.refs.delete(ACTIVE + thread, seen=active)
    elif active is not None:
        _check_is_here(store, ref, archived)
        return Reconciled("diverged", ref, archived, active)
    if sides.there_archived not in {None, archived}:
        _check_is_here(store, ref, archived)
        return Reconciled("diverged", ref, archived, sides.there_archived)
    return Reconciled("unchanged", ref, archived)


def _reconcile_arrival(store: Store, arrival: Arrival, passed: Container[Arrival]) -> Reconciled:
    thread, here, there, archived = arrival
    ref = arrival.ref
    if here is not None and not is_descendant(store.objects, there, here):
        if not archived and is_descendant(store.objects, here, there):
            return Reconciled("unchanged", ref, here, there)
        _check_is_here(store, ACTIVE + thread, here)
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
        _create(store, thread, ref, there)
        return Reconciled("created", ref, None, there)
    head = Head(thread, here, archived=False)
    check_no_work_waits(store, head)
    if not archived:
        advance_head(store, head, there)
        return Reconciled("moved", ref, here, there)
    archive_head(store, head, there)
    _forget(store, thread, here)
    return Reconciled("archived", ref, here, there)


def _check_is_here(store: Store, ref: str, oid: Oid) -> None:
    if not has_object(store.objects, oid):
        raise StoreDamaged(
            f"{ref} is at {oid} here, and that commit is missing",
            code="tip-lost",
            hint=f"if `git fsck --lost-found` does not find it: `git update-ref -d {ref}` in the "
            "store, and the next `uwf fetch` takes over what the remote has",
            ref=ref,
            commit=oid,
        )


def _create(store: Store, thread: ThreadId, ref: str, there: Oid) -> None:
    if not store.refs.create(ref, there):
        raise HeadMoved(thread)
    # The thread is new here, so its lock file was made by this fetch.
    forget_lock(store, thread)


def _forget(store: Store, thread: ThreadId, tip: Oid) -> None:
    forget_run(store, thread, tip)
    forget_workdir(store, thread)
    forget_lock(store, thread)


def check_no_work_waits(store: Store, head: Head) -> None:
    """Check that moving the thread loses no agent's work; the caller holds its lock."""
    snapshot = read_snapshot(store, head.commit)
    check_nothing_runs(store, snapshot)
    run = get_run_dir(store, head.thread, snapshot.turn_start)
    if is_finished(run):
        raise RunUnrecorded(head.thread)


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
        if here is not None and not is_descendant(store.objects, there, here):
            is_ahead = is_descendant(store.objects, here, there)
            if not is_ahead:
                _check_is_here(store, ref, here)
            return Reconciled("unchanged" if is_ahead else "diverged", ref, here, there)
        finding = _same_in_another_case(taken, name, ref) if here is None else None
        if (ref, there) not in passed:
            check = partial(check_puts, store, [(ref, there, here)])
            finding = finding or first_finding(store, check)
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
    return Reconciled("created" if here is None else "moved", ref, here, there)


def _same_in_another_case(taken: Mapping[str, str], name: str, ref: str) -> Finding | None:
    known = taken.get(fold_workflow_name(name), name)
    if known == name:
        return None
    return Finding(
        f"workflow {name} differs from {known}, which is here, in case only",
        f"rename or remove one of the two at the remote; {known} stays here",
        ref,
    )
