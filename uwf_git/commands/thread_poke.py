"""`uwf thread poke`: the newest step is taken back, so that its role takes it again.

Owns: where a thread stands then. Knows nothing of: agents; the step itself is one like any other.
Always true: the old answer stays in the commits; what it cost stays in the usage; the new step goes
on from where the old one did. A patch of the state since the old step is taken back with it. Only
one step is ever taken back at a time: who wants to go further back forks.
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.change_rules import PositionGone, steer_between_steps
from uwf_git.commands.steer import (
    Signalled,
    Steered,
    signal_transition,
)
from uwf_git.commands.thread_errors import WrongStatus
from uwf_git.model.signal import build_signal
from uwf_git.model.thread import STEPS
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.history import walk_history
from uwf_git.store.record import Transition
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_lock import ThreadBusy, find_driver


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

    def plan(snapshot: Snapshot) -> Transition:
        thread = snapshot.record.thread
        driver = find_driver(store, thread)
        if driver is not None:
            raise ThreadBusy(thread, driver)
        return _transition(store, caller, snapshot, hint)

    return steer_between_steps(store, caller, text, plan)


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
