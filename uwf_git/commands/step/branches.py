"""Branches of a thread as its steps see them: settle what holds them, end them, join them."""

from collections.abc import Mapping
from contextlib import suppress

from uwf_git.commands.caller import Caller
from uwf_git.commands.inspect.step_view import view_failure
from uwf_git.commands.split.derived import draft_join
from uwf_git.commands.split.family import (
    Branch,
    StrangeBranch,
    Strangers,
    list_branches,
    walk_descendants,
)
from uwf_git.commands.split.plan import find_container
from uwf_git.commands.step.end_by_kill import end_by_kill
from uwf_git.commands.step.end_thread import sweep_worktrees_of
from uwf_git.commands.turn.active_thread import ThreadNotActive
from uwf_git.commands.turn.ancestors import BranchHeld
from uwf_git.commands.turn.begin_branch import begin_branch
from uwf_git.commands.turn.joining import plan_join
from uwf_git.commands.turn.role_result import find_unfit, read_result
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import (
    Head,
    HeadMoved,
    advance_head,
    find_head,
    get_head,
)
from uwf_git.store.threads.lock import ThreadBusy, is_being_stopped, lock_thread
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

_MOST_TRIES = 1000


def sweep_branches(store: Store, caller: Caller, tip: Snapshot, *, reason: str) -> bool:
    """End the branches below the thread at *tip*, which was killed; return whether there were any.

    Raises:
        What ``end_by_kill`` raises.
    """
    below = [head for head, _ in walk_descendants(store, tip)]
    found = [head.thread for head in below if not head.archived]
    for thread in found:
        try:
            end_by_kill(store, caller, thread, reason=reason)
        except (ThreadNotActive, ThreadBusy):
            # It has ended by itself, or another process ends it.
            if not get_head(store, thread).archived and not is_being_stopped(store, thread):
                raise
    sweep_worktrees_of(store, caller, tip.record.thread, *(head.thread for head in below))
    return bool(found)


def sweep_held(store: Store, caller: Caller, held: BranchHeld) -> None:
    """End what a killed thread left of its branches, if that *held* a branch of it.

    Raises:
        What ``end_by_kill`` raises.
    """
    tip: Snapshot | None = None
    parent: ThreadId | None = held.facts["parent"]
    while parent is not None and (head := find_head(store, parent)) is not None:
        snapshot = read_snapshot(store, head.commit)
        if snapshot.record.status == "killed":
            tip = snapshot
        parent = snapshot.get_trunk()
    if tip is not None:
        sweep_branches(store, caller, tip, reason=tip.body)


def settle_branches(
    store: Store, caller: Caller, thread: ThreadId, *, may_have_failed: bool = True
) -> bool:
    """End the branches of *thread* that its policies give up; return whether any was ended.

    With ``onError: continue`` those that have failed, as many as it tolerates; with ``join: any``
    all others when one has completed. A branch that has split has failed if one of its own has,
    which its own policies do not give up. Without *may_have_failed* none is looked at for that.

    Raises:
        What ``end_by_kill`` raises.
    """
    tip = read_snapshot(store, get_head(store, thread).commit)
    found = tip.get_present().split
    if tip.record.status != "split" or found is None:
        return False
    policy = find_container(tip, found.at).policy
    gives_up = policy.get("onError") == "continue" and may_have_failed
    if policy.get("join") != "any" and not gives_up:
        return False
    branches = list_branches(store, tip)
    statuses = {each.number: _read_status(store, each) for each in branches}
    if policy.get("join") == "any" and "completed" in statuses.values():
        losers = {
            each.number: "another branch was first" for each in branches if not each.has_ended
        }
        return _end_all(store, caller, tip, losers)
    if not gives_up:
        return False
    killed = list(statuses.values()).count("killed")
    most = int(policy.get("tolerate", len(branches))) - killed
    found_failed = {
        each.number: error
        for each in branches
        if (error := _find_last_error(store, caller, each)) is not None
    }
    return _end_all(store, caller, tip, dict(list(found_failed.items())[: max(0, most)]))


def _read_status(store: Store, branch: Branch) -> str:
    if branch.head is None:
        return "ready"
    return read_snapshot(store, branch.head.commit).record.status


def _end_all(store: Store, caller: Caller, tip: Snapshot, reasons: Mapping[int, str]) -> bool:
    """End the branches whose numbers *reasons* has, and all below; return whether it has any."""
    for branch in list_branches(store, tip):
        reason = reasons.get(branch.number)
        if reason is None:
            continue
        if branch.head is None:
            begin_branch(store, tip, branch.number)
        thread = branch.child.thread
        # It may end by itself meanwhile.
        with suppress(ThreadNotActive):
            end_by_kill(store, caller, thread, reason=reason)
        ended = read_snapshot(store, get_head(store, thread).commit)
        sweep_branches(store, caller, ended, reason=reason)
    return bool(reasons)


def _find_last_error(store: Store, caller: Caller, branch: Branch) -> str | None:
    """Return why a branch has failed, by itself or by one below; None if it has not."""
    if branch.head is None or branch.has_ended:
        return None
    snapshot = read_snapshot(store, branch.head.commit)
    if snapshot.record.status == "failed":
        failure = view_failure(snapshot, snapshot.get_present())
        return "it failed" if failure is None else str(failure["message"])
    if snapshot.record.status != "split":
        return None
    # First what it gives up itself: that is no failure.
    settle_branches(store, caller, branch.child.thread)
    errors = (_find_last_error(store, caller, each) for each in list_branches(store, snapshot))
    return next((error for error in errors if error is not None), None)


def join_branches(store: Store, caller: Caller, thread: ThreadId) -> ThreadResult | None:
    """Join the branches of *thread* if all have ended; None if one has not, or nothing has split.

    Raises:
        MergeConflict: they changed the same part of the state.
        Refused: the state would have more than 1 MiB.
        StrangeBranch: one began elsewhere.
        ThreadBusy: another process joins them.
        HeadMoved: the thread was steered meanwhile.
    """
    with lock_thread(store, thread, since_ms=caller.now_ms()):
        for _ in range(_MOST_TRIES):
            # A pause or a patch takes no lock and may come in between.
            with suppress(HeadMoved):
                return _join(store, caller, thread)
        raise HeadMoved(thread)


def _join(store: Store, caller: Caller, thread: ThreadId) -> ThreadResult | None:
    head = find_head(store, thread)
    if head is None or head.archived:
        return None
    tip = read_snapshot(store, head.commit)
    heads = _find_ends(store, tip)
    if heads is None:
        return None
    ends = {each.thread: [each.commit] for each in heads}
    stranger = Strangers(store.objects, ends.__getitem__).find_below(head.commit)
    if stranger is not None:
        raise StrangeBranch(stranger)
    sweep_worktrees_of(store, caller, thread)
    tips = [read_snapshot(store, each.commit) for each in heads]
    for each in tips:
        # What was killed between the end of a branch and that of the branches below it.
        if each.record.status == "killed":
            sweep_branches(store, caller, each, reason=each.body)
    derived = draft_join(tip, tips, plan_join(tip, tips))
    commit = derived.write(store)
    advance_head(store, head, commit)
    return build_thread_result(derived.new.record, said=derived.new.said, commit=commit)


def _find_ends(store: Store, tip: Snapshot) -> list[Head] | None:
    """Return the heads of the branches of *tip*; None if it has none, or one has not ended."""
    split = tip.get_present().split
    if tip.record.status != "split" or split is None:
        return None
    heads: list[Head] = []
    # Those that have not ended are mostly the last: one look-up tells.
    for child in reversed(split.children):
        head = find_head(store, child.thread)
        if head is None or not head.archived:
            return None
        heads.append(head)
    return heads[::-1]


def check_result(store: Store, snapshot: Snapshot) -> None:
    """Check that a thread that is at its end has the result that its role asks for.

    Raises:
        MetaUnfit: a role of a graph asks for another.
    """
    parent = snapshot.get_trunk()
    head = None if parent is None else find_head(store, parent)
    if parent is None or head is None:
        return
    unfit = find_unfit(read_snapshot(store, head.commit), snapshot, read_result(snapshot))
    if unfit is not None:
        raise unfit
