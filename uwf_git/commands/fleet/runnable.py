"""What of a hub can go on: found from the refs and commits that a store has, after a fetch."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.commands.fleet.work import Job
from uwf_git.commands.split.commits import find_container
from uwf_git.commands.split.family import Branch, list_branches
from uwf_git.commands.turn.branches import BranchHeld, check_ancestors
from uwf_git.commands.turn.choose_agent import is_person, may_run
from uwf_git.commands.turn.limits import find_limit, find_steps_left
from uwf_git.commands.turn.next_move import decide_next
from uwf_git.model.builtin import AGENT_CONFIG
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import END, describe_check
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head
from uwf_git.store.threads.history import walk_trunks
from uwf_git.store.threads.snapshot import (
    Snapshot,
    get_role,
    get_typed,
    get_workflow,
    read_snapshot,
)
from uwf_git.store.trust import agent_text, find_meant_files

Standing = tuple[Oid | None, ...]
"""The heads of a thread, its branches and the threads around: a run rests until a head moves."""


class Runnable(NamedTuple):
    thread: ThreadId
    standing: Standing
    around: tuple[ThreadId, ...]
    """The threads around it, the nearest first."""

    allowed: tuple[str, ...]
    """The commands that are trusted here, as a job carries them."""

    root: ThreadId | None = None
    """The thread around it whose limits hold for it and its siblings; None if there is no limit."""

    left: int | None = None
    """How many steps these may still take."""

    refused: str = ""
    """Why it takes no step."""


def find_runnable(
    store: Store, head: Head, *, now_ms: int, job: Job, trusts: bool, waits: bool
) -> Runnable | None:
    """Return how the thread at *head* can go on; None if it cannot now.

    *trusts*: its own commands may run wherever the thread does. *waits*: also at the end of a usage
    limit.
    """
    snapshot = read_snapshot(store, head.commit)
    status = snapshot.record.status
    standing: Standing = (head.commit,)
    if status == "split":
        branches = list_branches(store, snapshot)
        standing += tuple(None if each.head is None else each.head.commit for each in branches)
        if not _may_settle(store, snapshot, branches):
            return None
    elif status == "waiting":
        waiting = snapshot.get_present().waiting
        until = None if waiting is None else waiting.until
        if until is None or not waits or until > now_ms:
            return None
    elif status != "ready":
        return None
    try:
        check_ancestors(store, snapshot)
    except BranchHeld:
        return None
    around = list(walk_trunks(store, snapshot))
    standing += tuple(each.commit.oid for each in around)
    role = _find_role(snapshot)
    allowed, refused = _judge_commands(store, snapshot, job, trusts=trusts)
    found = Runnable(
        head.thread,
        standing,
        tuple(each.record.thread for each in around),
        tuple(sorted(allowed)),
        refused=refused.get(role or "", ""),
    )
    return found if role is None or not around else _add_limits(store, snapshot, found, around[-1])


def _find_role(snapshot: Snapshot) -> str | None:
    """Return which role takes the next step; None if it is no step of a role that comes next."""
    if snapshot.record.status == "split":
        return None
    present = snapshot.get_present()
    turn = decide_next(snapshot, present, get_workflow(snapshot, present.workflow))
    return None if turn.splits or turn.role == END else turn.role


def _may_settle(store: Store, tip: Snapshot, branches: list[Branch]) -> bool:
    found = tip.get_present().split
    policy = {} if found is None else find_container(tip, found.at).policy
    if policy.get("join") == "any" and any(each.has_ended for each in branches):
        return True
    return all(_is_at_rest(store, each) for each in branches)


def _is_at_rest(store: Store, branch: Branch) -> bool:
    if branch.head is None or branch.has_ended:
        return branch.has_ended
    snapshot = read_snapshot(store, branch.head.commit)
    if snapshot.record.status != "split":
        return snapshot.record.status == "failed"
    return all(_is_at_rest(store, each) for each in list_branches(store, snapshot))


def _judge_commands(
    store: Store, snapshot: Snapshot, job: Job, *, trusts: bool
) -> tuple[set[str], dict[str, str]]:
    """Return the commands that may run, and by role why one may not."""
    allowed: set[str] = set()
    refused: dict[str, str] = {}
    named = snapshot.record.workflow_name
    for role, payloads in _list_commands(snapshot, snapshot.get_present()).items():
        for payload in payloads:
            if find_meant_files(payload, None) is None and not (job.workdir or job.project):
                refused[role] = f"{payload['command']} is a relative path, and of no --project"
            elif trusts or may_run(store, payload, workflow=named, workdir=job.workdir or None):
                allowed.add(agent_text(payload))
            else:
                refused[role] = (
                    f"{payload['command']} is not trusted: `uwf agent trust`, or --trust"
                )
    return allowed, refused


def _list_commands(snapshot: Snapshot, present: ThreadState) -> Mapping[str, list[dict[str, Any]]]:
    """List the payloads of the agent and the checks of each role, without people."""
    workflow = get_workflow(snapshot, present.workflow)
    listed: dict[str, list[dict[str, Any]]] = {}
    for role, node in workflow.roles.items():
        listed[role] = [describe_check(each) for each in get_role(snapshot, node).checks]
        if role in present.binding:
            agent = get_typed(snapshot, present.binding[role], AGENT_CONFIG)
            listed[role] += [] if is_person(agent) else [agent.payload]
    return listed


def _add_limits(store: Store, snapshot: Snapshot, found: Runnable, root: Snapshot) -> Runnable:
    """Add what is left of the limits of *root*, which hold for a branch and its siblings."""
    if not root.get_present().limits:
        return found
    reached = find_limit(store, snapshot, snapshot.get_present())
    if reached is not None:
        return found._replace(refused=found.refused or reached.message)
    thread = root.record.thread
    return found._replace(root=thread, left=find_steps_left(store, thread))
