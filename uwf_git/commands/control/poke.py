"""`uwf thread poke`: take the newest step back, so that its role takes it again.

The old step stays in the history and its cost in the usage. State patches since the step are
taken back with it. Only one step can be taken back; to go further back, fork.
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.control.change_rules import check_place, position_gone, steer_between_steps
from uwf_git.commands.control.steer import build_signalled
from uwf_git.commands.split.commits import read_flow
from uwf_git.commands.turn.active_thread import WrongStatus
from uwf_git.commands.turn.bind_roles import check_next
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.model.event_folds import Cause
from uwf_git.model.event_rules import STEPS
from uwf_git.model.thread import build_signal
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.lock import ThreadBusy, find_driver
from uwf_git.store.threads.record import NewCommit, read_standing
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_ANEW = "`uwf thread fork {thread} --at STEP` begins a thread before the split, which splits anew"
_AGAIN = "`uwf thread step {thread}` takes it again"


def poke_thread(
    store: Store, caller: Caller, text: str, *, hint: str = "", agents: tuple[str, ...] = ()
) -> ThreadResult:
    """Take the newest step back; *hint* is for its role's next prompt, *agents* are ``--agent``."""

    def build(snapshot: Snapshot) -> NewCommit:
        thread = snapshot.record.thread
        driver = find_driver(store, thread)
        if driver is not None:
            raise ThreadBusy(thread, driver)
        new = _build(store, caller, snapshot, hint)
        workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
        role = snapshot.get_head_node().payload["role"]
        check_next(thread, workflow, agents, role=role)
        return new

    return steer_between_steps(store, caller, text, build)


def _build(store: Store, caller: Caller, snapshot: Snapshot, hint: str) -> NewCommit:
    record = snapshot.record
    if record.status == "paused":
        raise WrongStatus(snapshot, "is paused", "`uwf thread resume {thread}` lets it go on")
    if record.status == "split":
        raise WrongStatus(snapshot, "has split: its branches take the steps", _ANEW)
    if record.depth == 0:
        raise WrongStatus(
            snapshot, "has no step to take again", "`uwf thread step {thread}` takes the first"
        )
    before = _before_newest_step(store, snapshot)
    new = build_signalled(
        read_standing(snapshot),
        Cause(back_to=read_standing(before)),
        signal=build_signal("poke", timestamp=caller.now_ms(), reason=hint),
        # The thread has this node already; record_next makes it head.json again.
        nodes=(before.get_head_node(),),
    )
    workflow = parse_workflow(snapshot.get_node(record.workflow))
    gone = new.present.find_gone_role(workflow.roles)
    if gone is not None and workflow.flow is None:
        # An amend since moved the thread to a workflow without that role.
        raise position_gone(record.thread, gone, workflow)
    if before.record.workflow != record.workflow:
        then = parse_workflow(snapshot.get_node(before.record.workflow))
        flows = (read_flow(snapshot, then), read_flow(snapshot, workflow))
        check_place(record.thread, flows, new.present, workflow)
    return new


def _before_newest_step(store: Store, snapshot: Snapshot) -> Snapshot:
    node = snapshot.record.node
    for each in walk_history(store, snapshot.commit.oid, through_forks=True):
        if each.record.event == "poke":
            raise WrongStatus(snapshot, "has taken its newest step back already", _AGAIN)
        if each.record.event == "join" and each.record.node == node:
            raise WrongStatus(
                snapshot, "has joined its branches, and no agent took that step", _ANEW
            )
        if each.record.event in STEPS and each.record.node == node:
            return read_snapshot(store, each.commit.parents[0])
    raise WrongStatus(
        snapshot,
        "has its newest step from elsewhere",
        "`uwf thread fork {thread} --at STEP` begins a new thread before it",
    )
