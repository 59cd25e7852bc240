"""Steering: a commit by which somebody changes how a thread goes on, and no step.

Owns: recording it, also while an agent is at work, and over again if the thread moved meanwhile.
Knows nothing of: what may be asked in which status; each verb says that in its plan.
Always true: no lock is needed for it. The ref's compare-and-swap decides, and a step that ends
later is recorded after it. Source: seed 004, the runtime control protocol.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.take_over import has_remotes, take_over_tracked
from uwf_git.commands.thread_errors import read_active
from uwf_git.engine.subject import first_line
from uwf_git.model.builtin import BUILTIN, SIGNAL
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Event, Present, Status
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.heads import HeadMoved, advance_head
from uwf_git.store.record import Transition, record_next
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, lock_briefly

MOST_TRIES = 1000
"""How often somebody else may have moved a thread just before; each time one of them is done."""


class Steered(NamedTuple):
    """A thread after somebody steered it."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status


Plan = Callable[[Snapshot], Transition]
"""Gives what is to be recorded after a snapshot, or raises why it cannot be."""


def steer_thread(store: Store, caller: Caller, text: str, plan: Plan) -> Steered:
    """Record what *plan* gives after where the thread is that *text* means.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: there is none to steer.
        EndedElsewhere: it has ended at a remote, without what is here.
        HeadMoved: it moves faster than it can be steered.
        What *plan* raises.
    """
    thread = read_active(store, text)[0].thread
    if has_remotes(store):
        # An agent may be at work: what a remote has is taken over before the next step then.
        with suppress(ThreadBusy), lock_briefly(store, thread):
            take_over_tracked(store, thread)
    return record_planned(store, caller, thread, plan)


def record_planned(store: Store, caller: Caller, thread: ThreadId, plan: Plan) -> Steered:
    """Record what *plan* gives after where *thread* is, over again if it moves meanwhile.

    Raises:
        ThreadNotActive: it has ended meanwhile.
        HeadMoved: it moves faster than it can be steered.
        What *plan* raises.
    """
    for _ in range(MOST_TRIES):
        head, snapshot = read_active(store, thread)
        transition = plan(snapshot)
        commit = record_next(store, snapshot, transition, caller.signing(store))
        try:
            advance_head(store, head, commit)
        except HeadMoved:
            continue
        return tell_steered(transition.record)
    raise HeadMoved(thread)


def tell_steered(record: TransitionRecord) -> Steered:
    """Tell a thread as *record* has it."""
    return Steered(record.workflow, record.thread, record.node, record.status)


class Signalled(NamedTuple):
    """What a signal leads to."""

    event: Event
    status: Status
    said: str
    """What the subject says if no reason was given."""

    present: Present
    nodes: tuple[Node, ...] = ()


def signal_transition(snapshot: Snapshot, signal: Node, to: Signalled) -> Transition:
    """Build the transition that *signal* asks for."""
    reason: str = signal.payload.get("reason", "")
    return Transition(
        record=snapshot.record._replace(
            event=to.event,
            status=to.status,
            workflow=to.present.workflow,
            role=None,
            agent=None,
            attempt=None,
            forked_from=None,
            signal=signal.hash,
        ),
        said=first_line(reason) or first_line(to.said),
        present=to.present,
        # A thread that began before there were signals does not have their type yet.
        nodes=(signal, BUILTIN[SIGNAL], *to.nodes),
        body=reason,
    )
