"""`uwf thread poke`: the newest step is taken back, so that its role takes it again.

Owns: where a thread stands then. Knows nothing of: agents; the step itself is one like any other.
Always true: the old answer stays in the commits; what it cost stays in the usage; the new step goes
on from where the old one did. A patch of the state since the old step is taken back with it. Only
one step is ever taken back at a time: who wants to go further back forks.
"""

from contextlib import suppress

from uwf_git.commands.caller import Caller
from uwf_git.commands.change_rules import PositionGone
from uwf_git.commands.left_running import check_nothing_runs
from uwf_git.commands.steer import (
    MOST_TRIES,
    Signalled,
    Steered,
    signal_transition,
    tell_steered,
)
from uwf_git.commands.take_over import take_over_tracked
from uwf_git.commands.thread_errors import WrongStatus, read_active
from uwf_git.model.signal import build_signal
from uwf_git.model.thread import STEPS
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.heads import HeadMoved, advance_head
from uwf_git.store.history import walk_history
from uwf_git.store.record import Transition, record_next
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, find_driver, lock_thread


def poke_thread(store: Store, caller: Caller, text: str, *, hint: str = "") -> Steered:
    """Take the newest step of the thread that *text* means back; whose turn it is is told *hint*.

    Raises:
        WrongStatus: it is paused, has no step yet, or its newest step is taken back already.
        PositionGone: its workflow has not the role at which it stood before that step.
        ThreadBusy, AgentLeftRunning: a step is under way, or somebody drives it.
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: there is none.
        EndedElsewhere: it has ended at a remote, without what is here.
        HeadMoved: it moves faster than it can be steered.
    """
    thread = read_active(store, text)[0].thread
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        driver = find_driver(store, thread)
        if driver is not None:
            raise ThreadBusy(thread, driver)
        take_over_tracked(store, thread)
        for _ in range(MOST_TRIES):
            head, snapshot = read_active(store, thread)
            check_nothing_runs(store, snapshot)
            transition = _transition(store, caller, snapshot, hint)
            commit = record_next(store, snapshot, transition, caller.signing(store))
            with suppress(HeadMoved):
                advance_head(store, head, commit)
                return tell_steered(transition.record)
        raise HeadMoved(thread)


def _transition(store: Store, caller: Caller, snapshot: Snapshot, hint: str) -> Transition:
    record = snapshot.record
    if record.status == "paused":
        raise WrongStatus(snapshot, "is paused", "`uwf thread resume {thread}` lets it go on")
    if record.depth == 0:
        raise WrongStatus(
            snapshot, "has no step to take again", "`uwf thread step {thread}` takes the first"
        )
    before = _before_newest_step(store, snapshot)
    role = snapshot.get_head_node().payload["role"]
    signal = build_signal("poke", timestamp=caller.now_ms(), reason=hint)
    present = snapshot.get_present().after_poke(before.get_present(), hint)
    workflow = parse_workflow(snapshot.get_node(record.workflow))
    gone = present.find_gone_role(workflow.roles)
    if gone is not None:
        # The thread was amended since, to a workflow that has the newest step's role alone.
        raise PositionGone(record.thread, gone, workflow)
    transition = signal_transition(
        snapshot, signal, Signalled("poke", "ready", f"{role} takes its step again", present)
    )
    return transition._replace(
        record=transition.record._replace(node=before.record.node, depth=before.record.depth),
        # It is there already; whose file head.json is follows from it.
        nodes=(*transition.nodes, before.get_head_node()),
    )


_AGAIN = (
    "`uwf thread step {thread}` takes it again; after `uwf thread retry {thread}` if that failed"
)


def _before_newest_step(store: Store, snapshot: Snapshot) -> Snapshot:
    node = snapshot.record.node
    for each in walk_history(store, snapshot.commit.oid, through_forks=True):
        if each.record.event == "poke":
            raise WrongStatus(snapshot, "has taken its newest step back already", _AGAIN)
        if each.record.event in STEPS and each.record.node == node:
            return read_snapshot(store, each.commit.parents[0])
    raise WrongStatus(
        snapshot,
        "has its newest step from elsewhere",
        "`uwf thread fork {thread} --at STEP` begins a new thread before it",
    )
