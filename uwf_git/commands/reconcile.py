"""Reconciling: what a remote has of a thread or a workflow, brought together with what is here.

Owns: the table of who wins, and taking over what is ahead.
Knows nothing of: connections. Reads tracking refs only, so it does the same after a plain
`git fetch`.
Always true: the caller holds the thread's lock; a local ref only ever moves to a descendant that
was checked; an archive that descends wins; where both sides went on, both are kept.

| here | there | what is done |
|---|---|---|
| nothing | active or archived | the same is made here |
| active | active | the one that descends counts; neither: diverged |
| active | archived | the archive if it is there or ahead; else diverged |
| archived | active | the archive stays; a push repairs the other side |
"""

from collections.abc import Container, Iterator
from contextlib import suppress
from itertools import islice
from typing import Literal, NamedTuple

from uwf_git.agents.spool import Finished, look_up
from uwf_git.commands.check_arrivals import Arrival
from uwf_git.commands.check_thread import check_thread
from uwf_git.commands.check_workflow import check_workflow
from uwf_git.commands.left_running import check_nothing_runs
from uwf_git.commands.play_agent import forget_runs
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import Conflict, StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.store.descent import goes_on_from, has_object
from uwf_git.store.heads import ACTIVE, ARCHIVE, Head, HeadMoved, advance_head, archive_head
from uwf_git.store.history import find_base
from uwf_git.store.refs import Oid
from uwf_git.store.registry import WORKFLOWS, list_names
from uwf_git.store.remotes import Remote
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import forget_lock
from uwf_git.store.thread_sides import Sides, read_sides
from uwf_git.store.workdirs import forget_workdir

Event = Literal["unchanged", "created", "moved", "archived", "diverged", "refused"]


class RunUnrecorded(Conflict):
    """An agent has finished, and its engine died before it could record the step."""

    code = "run-unrecorded"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} has a finished run that nobody has recorded yet",
            hint=f"`uwf thread step {thread}` records it",
            thread=thread,
        )


class TipLost(StoreDamaged):
    """A ref here points at a commit that is not here, so nothing can be told of the two sides."""

    code = "tip-lost"

    def __init__(self, ref: str, here: Oid) -> None:
        super().__init__(
            f"{ref} is at {here} here, and there is no such commit",
            hint=f"if `git fsck --lost-found` does not find it: `git update-ref -d {ref}` in the "
            "store, and the next `uwf fetch` takes over what the remote has",
            ref=ref,
            commit=here,
        )


class Settled(NamedTuple):
    """What became of one thread or workflow."""

    event: Event
    ref: str
    local: Oid | None = None
    """Where it was here before."""

    tracked: Oid | None = None
    """Where the remote has it."""

    trouble: Trouble | None = None
    """What is wrong with what the remote has, if it was refused."""


def settle_thread(
    store: Store, remote: Remote, thread: ThreadId, *, passed: Container[Arrival] = ()
) -> Settled:
    """Bring together what is here of *thread* and what *remote* has; the caller holds its lock.

    What is *passed* was found to be right already.

    Raises:
        AgentLeftRunning, RunUnrecorded: an agent's work would be lost by a move.
        HeadMoved: somebody moved it in the meantime, without the lock.
    """
    try:
        sides = read_sides(store, remote, thread)
        if sides.archived is not None:
            return _settle_archived(store, thread, sides, sides.archived)
        if sides.there_archived is not None:
            arrival = Arrival(thread, sides.active, sides.there_archived, archived=True)
            return _settle(store, arrival, passed)
        if sides.there_active is not None:
            arrival = Arrival(thread, sides.active, sides.there_active, archived=False)
            return _settle(store, arrival, passed)
    except StoreDamaged as error:
        trouble = Trouble(error.message, error.hint or "see `git fsck`", ACTIVE + thread)
        return Settled("refused", ACTIVE + thread, trouble=trouble)
    return Settled("unchanged", ACTIVE + thread, sides.active)


def settle_steered(
    store: Store, remote: Remote, thread: ThreadId, *, passed: Container[Arrival] = ()
) -> Settled | None:
    """Take over what somebody there steered (a pause, a patch) though an agent is at work here.

    Its step is recorded after that, as if it had been steered here: no lock is needed for it.
    None if there is more to take over than that, or less, or somebody was faster.
    """
    with suppress(HeadMoved, StoreDamaged):
        sides = read_sides(store, remote, thread)
        here, there = sides.active, sides.there_active
        if here is None or there is None or here == there or sides.archived or sides.there_archived:
            return None
        if not goes_on_from(store.objects, there, here):
            return None
        arrival = Arrival(thread, here, there, archived=False)
        if arrival not in passed and any(
            check_thread(store, thread, there, archived=False, known=here)
        ):
            return None
        bases = {find_base(store, read_snapshot(store, each)) for each in (here, there)}
        if len(bases) == 1:
            advance_head(store, Head(thread, here, archived=False), there)
            return Settled("moved", arrival.ref, here, there)
    return None


def _settle_archived(store: Store, thread: ThreadId, sides: Sides, archived: Oid) -> Settled:
    ref = ARCHIVE + thread
    active = sides.active
    if active is not None and goes_on_from(store.objects, archived, active):
        # Litter: of a move that was cut short, or that plain git brought.
        store.refs.delete(ACTIVE + thread, seen=active)
    elif active is not None:
        _check_is_here(store, ref, archived)
        return Settled("diverged", ref, archived, active)
    if sides.there_archived not in {None, archived}:
        _check_is_here(store, ref, archived)
        return Settled("diverged", ref, archived, sides.there_archived)
    return Settled("unchanged", ref, archived)


def _settle(store: Store, arrival: Arrival, passed: Container[Arrival]) -> Settled:
    thread, here, there, archived = arrival
    ref = arrival.ref
    if here is not None and not goes_on_from(store.objects, there, here):
        if not archived and goes_on_from(store.objects, here, there):
            return Settled("unchanged", ref, here, there)
        _check_is_here(store, ACTIVE + thread, here)
        # What is no history of this thread is no other side of it, and a fork would settle nothing.
        trouble = _first(check_thread(store, thread, there, archived=archived))
        return Settled("diverged" if trouble is None else "refused", ref, here, there, trouble)
    if here == there and not archived:
        return Settled("unchanged", ref, here, there)
    if arrival not in passed:
        trouble = _first(check_thread(store, thread, there, archived=archived, known=here))
        if trouble is not None:
            return Settled("refused", ref, here, there, trouble)
    if here is None:
        _create(store, thread, ref, there)
        return Settled("created", ref, None, there)
    head = Head(thread, here, archived=False)
    check_no_work_waits(store, head)
    if not archived:
        advance_head(store, head, there)
        return Settled("moved", ref, here, there)
    archive_head(store, head, there)
    _forget(store, thread, here)
    return Settled("archived", ref, here, there)


def _check_is_here(store: Store, ref: str, oid: Oid) -> None:
    if not has_object(store.objects, oid):
        raise TipLost(ref, oid)


def _create(store: Store, thread: ThreadId, ref: str, there: Oid) -> None:
    if not store.refs.create(ref, there):
        raise HeadMoved(thread)
    # Nobody has worked on it here: its lock file was made by us.
    forget_lock(store, thread)


def _forget(store: Store, thread: ThreadId, tip: Oid) -> None:
    forget_runs(store, thread, tip)
    forget_workdir(store, thread)
    forget_lock(store, thread)


def check_no_work_waits(store: Store, head: Head) -> None:
    """Make sure that a move of the thread loses no agent's work; the caller holds its lock.

    Raises:
        AgentLeftRunning, RunUnrecorded: it would.
    """
    snapshot = read_snapshot(store, head.commit)
    check_nothing_runs(store, snapshot)
    run_dir = store.local_path("run", head.thread, find_base(store, snapshot))
    if store.is_kept and isinstance(look_up(run_dir, alive_is_held=False), Finished):
        raise RunUnrecorded(head.thread)


def _first(troubles: Iterator[Trouble]) -> Trouble | None:
    return next(islice(troubles, 1), None)


def settle_workflow(store: Store, remote: Remote, name: str) -> Settled:
    """Bring together what is here of the workflow *name* and what *remote* has.

    Only forward: where both sides put a version, both are kept.

    Raises:
        HeadMoved: never; a version put in between makes it diverged or is ahead.
    """
    ref = WORKFLOWS + name
    try:
        here = store.refs.find(ref)
        there = store.refs.find(f"{remote.tracking}workflows/{name}")
        if there is None or here == there:
            return Settled("unchanged", ref, here, there)
        if here is not None and not goes_on_from(store.objects, there, here):
            is_ahead = goes_on_from(store.objects, here, there)
            if not is_ahead:
                _check_is_here(store, ref, here)
            return Settled("unchanged" if is_ahead else "diverged", ref, here, there)
        trouble = _same_in_another_case(store, name, ref) if here is None else None
        trouble = trouble or _first(check_workflow(store, name, there, known=here))
    except StoreDamaged as error:
        trouble = Trouble(error.message, error.hint or "see `git fsck`", ref)
        return Settled("refused", ref, trouble=trouble)
    if trouble is not None:
        return Settled("refused", ref, here, there, trouble)
    if here is None:
        done = store.refs.create(ref, there)
    else:
        done = store.refs.advance(ref, seen=here, to=there)
    if not done:
        return settle_workflow(store, remote, name)
    return Settled("created" if here is None else "moved", ref, here, there)


def _same_in_another_case(store: Store, name: str, ref: str) -> Trouble | None:
    for known in list_names(store):
        if fold_workflow_name(known) == fold_workflow_name(name):
            return Trouble(
                f"workflow {name} differs from {known}, which is here, in case only",
                f"remove one of the two where it came from, or rename it there: {known} stays",
                ref,
            )
    return None
