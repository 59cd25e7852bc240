"""Steer a thread: record a commit that changes how it goes on and adds no step.

No lock is taken. The ref moves by compare-and-swap; a step that is under way is recorded on top.
Source: seed 004, the runtime control protocol.
"""

from collections.abc import Callable
from contextlib import suppress

from uwf_git.commands.caller import Caller
from uwf_git.commands.remote.fast_forward import fast_forward_from_tracking
from uwf_git.commands.turn.active_thread import read_active
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.event_rules import event_of
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved, advance_head
from uwf_git.store.threads.lock import ThreadBusy, lock_briefly
from uwf_git.store.threads.record import NewCommit, build_next, record_next
from uwf_git.store.threads.snapshot import Snapshot

MOST_TRIES = 1000
"""The most tries to move a head that other processes move as well; each time one succeeds."""

BuildCommit = Callable[[Snapshot], NewCommit]
"""Builds the commit that follows a snapshot, or raises why there can be none."""


def steer_thread(store: Store, caller: Caller, text: str, build: BuildCommit) -> ThreadResult:
    """Record what *build* returns on top of the thread that *text* names.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: no active thread matches.
        EndedElsewhere: the thread has ended at a remote, without the commits made here.
        HeadMoved: other processes moved the head at every try.
        What *build* raises.
    """
    thread = read_active(store, text)[0].thread
    if store.has_remotes:
        # If an agent is at work, the next step takes over what a remote has.
        with suppress(ThreadBusy), lock_briefly(store, thread):
            fast_forward_from_tracking(store, thread)
    return record_built(store, caller, thread, build)


def record_built(
    store: Store, caller: Caller, thread: ThreadId, build: BuildCommit
) -> ThreadResult:
    """Record what *build* returns on top of *thread*; build again if the head moved meanwhile.

    Raises:
        ThreadNotActive: the thread ended meanwhile.
        HeadMoved: other processes moved the head at every try.
        What *build* raises.
    """
    for _ in range(MOST_TRIES):
        head, snapshot = read_active(store, thread)
        new = build(snapshot)
        commit = record_next(store, snapshot, new, caller.signing(store))
        try:
            advance_head(store, head, commit)
        except HeadMoved:
            continue
        return build_thread_result(new.record, said=new.said, commit=commit)
    raise HeadMoved(thread)


def build_signalled(
    before: Standing, cause: Cause, *, signal: Node, nodes: tuple[Node, ...] = ()
) -> NewCommit:
    """Build the commit of *signal*."""
    event = event_of(signal.payload["action"])
    return build_next(before, event, cause._replace(node=signal), nodes=(signal, *nodes))
