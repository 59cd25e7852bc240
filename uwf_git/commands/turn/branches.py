"""Active threads and branches at a turn: may they go on, where do they work, can they be joined."""

import os
from collections.abc import Sequence
from typing import Any

from uwf_git.commands.caller import Caller
from uwf_git.commands.family import find_ends, find_owner
from uwf_git.commands.split import (
    Ending,
    ReadSplit,
    find_split,
    is_work,
    plan_ending,
    read_result,
    read_split,
)
from uwf_git.commands.turn.next_move import NextMove, advise, find_next_move, find_steered
from uwf_git.commands.turn.turn import (
    choose_workdir,
    existing_directory,
    find_role_problem,
    workdir_unknown,
)
from uwf_git.commands.worktree.record import find_own_worktree
from uwf_git.debug_log import debug
from uwf_git.errors import Refused, StoreDamaged, UwfError
from uwf_git.model.names import ThreadId
from uwf_git.model.text import first_line, render_time
from uwf_git.model.thread import Status, ThreadState
from uwf_git.model.workflow import END
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import BranchNotBegun, Head, ThreadExists, create_head, get_head
from uwf_git.store.threads.history import (
    Snapshot,
    find_tip,
    get_workflow,
    read_snapshot,
    read_trunk,
)
from uwf_git.store.threads.local_files import find_workdir, set_workdir
from uwf_git.store.threads.naming import resolve_head

# An active thread, and the errors if it cannot be stepped or steered.


class ThreadNotActive(Refused):
    code = "thread-not-active"

    def __init__(self, snapshot: Snapshot) -> None:
        record = snapshot.record
        super().__init__(
            f"thread {record.thread} is not active: it was archived as {record.status} "
            f"at {record.node}",
            hint=f"start a new one with `uwf thread start {record.workflow_name} -p …`, or go on "
            f"from a step of it with `uwf thread fork {record.thread} --at STEP`",
            thread=record.thread,
            status=record.status,
            head=record.node,
        )


class ThreadNotReady(Refused):
    """The thread's status does not allow a step."""

    code = "thread-not-ready"

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        record = snapshot.record
        super().__init__(
            f"thread {record.thread} {_account(store, snapshot)}",
            hint=advise(store, snapshot, NextMove()).text,
            thread=record.thread,
            status=record.status,
        )


class WrongStatus(Refused):
    """The command does not fit the thread's status."""

    code = "wrong-status"

    def __init__(self, snapshot: Snapshot, problem: str, hint: str) -> None:
        record = snapshot.record
        super().__init__(
            f"thread {record.thread} {problem}",
            hint=hint.format(thread=record.thread),
            thread=record.thread,
            status=record.status,
        )


def _account(store: Store, snapshot: Snapshot) -> str:
    status: Status = snapshot.record.status
    present = snapshot.get_present()
    waiting = present.waiting
    if (steered := find_steered(store, snapshot)) is not None:
        reason = f": {first_line(steered.reason)}" if steered.reason else ""
        return f"is {status}, by {steered.by}{reason}"
    if status == "failed":
        often = f", after {present.failures} failed attempts" if present.failures > 1 else ""
        return f"has failed{often}"
    if status == "waiting" and waiting is not None and waiting.until is not None:
        return f"waits until {render_time(waiting.until)}: the agent of {waiting.role} hit a limit"
    if status == "waiting" and waiting is not None:
        return f"waits for a person, who plays {waiting.role}"
    return f"is {status}, not ready"


def is_steppable(snapshot: Snapshot, present: ThreadState, *, now_ms: int, is_driven: bool) -> bool:
    """Check whether a step can be taken: ready, a limit is over, or failed and stepped by hand."""
    if snapshot.record.status == "failed":
        return not is_driven
    if snapshot.record.status == "waiting" and present.waiting is not None:
        until = present.waiting.until
        return until is not None and until <= now_ms
    return snapshot.record.status == "ready"


def read_active(store: Store, text: str, *, may_have_ended: bool = False) -> tuple[Head, Snapshot]:
    """Return head and snapshot of the active thread that *text* names; a branch may begin here."""
    head = resolve_or_begin(store, text)
    snapshot = read_snapshot(store, head.commit)
    if head.archived and not may_have_ended:
        raise ThreadNotActive(snapshot)
    return head, snapshot


# Begin branches of a thread that has split: by whoever first steps or steers one.
#
# The first commit of a branch is derived, so it does not matter who makes it, or how often.


def resolve_or_begin(store: Store, text: str) -> Head:
    """Return the head of the thread that *text* names; a branch that has not begun here begins."""
    try:
        return resolve_head(store, text)
    except BranchNotBegun as error:
        tip = read_snapshot(store, get_head(store, error.parent).commit)
        found = read_split(find_split(tip))
        return get_head(store, begin_in(store, found, found.numbers[error.thread]))


def begin_branch(store: Store, tip: Snapshot, number: int) -> ThreadId:
    """Begin branch *number* of the thread at *tip*, unless it has begun."""
    return begin_in(store, read_split(find_split(tip)), number)


def begin_in(store: Store, found: ReadSplit, number: int) -> ThreadId:
    """Begin branch *number* of the split *found*, unless it has begun."""
    derived = found.draft_start(number)
    thread = derived.new.record.thread
    share_workdir(store, found.split.record.thread, thread)
    try:
        create_head(store, thread, derived.write(store))
    except ThreadExists:
        debug("M8V5T2QZ", "branch had begun", thread=thread)
    return thread


def share_workdir(store: Store, trunk: ThreadId, branch: ThreadId) -> None:
    """Let the agents of *branch* run where *trunk*'s agents do, unless it has its own place."""
    workdir = find_workdir(store, trunk)
    if workdir is not None and find_workdir(store, branch) is None:
        set_workdir(store, branch, workdir)


# Where a branch works: in its trunk's work directory, or apart in a worktree of its own.


def choose_place(
    store: Store, caller: Caller, snapshot: Snapshot, *, named: str | None = None
) -> str:
    """Return, and make if need be, the agents' directory; a *named* directory is remembered."""
    thread = snapshot.record.thread
    owner = find_owner(store, snapshot)
    if owner is None:
        return choose_workdir(store, thread, caller.cwd, named=named)
    path = _open_worktree(store, caller, owner, named)
    if find_workdir(store, thread) != path:
        set_workdir(store, thread, path)
    return path


def _open_worktree(store: Store, caller: Caller, owner: Snapshot, named: str | None) -> str:
    from uwf_git.commands.worktree.worktrees import make_worktree, worktree_gone  # noqa: PLC0415 (few branches work apart)

    known = find_own_worktree(store, owner)
    if known is not None and known.git_dir:
        if os.path.isdir(known.workdir):
            return known.workdir
        if named is None:
            raise worktree_gone(known)
    trunk = read_trunk(store, owner)
    if trunk is not None and find_owner(store, trunk) is not None:
        source = choose_place(store, caller, trunk, named=named)
    else:
        found = named or find_source(store, owner)
        if found is None:
            raise workdir_unknown(store, owner.record.thread)
        source = existing_directory(found, caller.cwd)
    return make_worktree(store, caller.environ, owner, source=source).workdir


def find_source(store: Store, snapshot: Snapshot) -> str | None:
    """Return the user's directory, also for a worktree: there its agents' commands have meaning."""
    owner = find_owner(store, snapshot)
    if owner is None:
        return find_workdir(store, snapshot.record.thread)
    trunk = read_trunk(store, owner)
    above = None if trunk is None else find_source(store, trunk)
    known = find_own_worktree(store, owner)
    return above or (None if known is None else known.source)


# Whether the result of a workflow that plays a role of a graph fits it, and what to do if not.

_AGAIN = "`uwf thread poke {thread} -m '…'` has the last step taken again"
_ANEW = "`uwf thread fork {parent}` begins a thread in which the role is played anew"
_OTHERWISE = (
    "it ends with no work that an agent could take again: `uwf thread fork {parent}` begins a "
    "thread before the role's turn, and `uwf thread amend` can give that one another workflow"
)


def find_unfit(tip: Snapshot, branch: Snapshot, meta: Any) -> Refused | None:
    """Return why the graph at *tip* cannot have *meta*, the result of *branch*; None if it can."""
    problem = find_role_problem(tip, meta)
    if problem is None:
        return None
    thread, parent, hint = branch.record.thread, tip.record.thread, _AGAIN
    if branch.record.status == "killed":
        hint = _ANEW
    elif not branch.record.depth or not is_work(branch):
        hint = _OTHERWISE
    return Refused(
        f"the result of thread {thread} does not fit its role in {parent}: {problem}",
        code="meta-unfit",
        hint=hint.format(thread=thread, parent=parent),
        thread=thread,
        parent=parent,
    )


def check_result(store: Store, snapshot: Snapshot) -> None:
    trunk = read_trunk(store, snapshot)
    if trunk and (unfit := find_unfit(trunk, snapshot, read_result(snapshot)[0])) is not None:
        raise unfit


def find_unfit_end(store: Store, tip: Snapshot) -> Refused | None:
    """Return why the branch that plays a graph's role, at its end at *tip*, cannot end; or None."""
    split = tip.get_present().split
    if split is None or get_workflow(tip, tip.get_present().workflow).flow is not None:
        return None
    branch = find_tip(store, split.children[0].thread)
    if branch is None or branch.record.status != "ready" or find_next_move(branch).role != END:
        return None
    return find_unfit(tip, branch, read_result(branch)[0])


# Whether the branches of a thread can be joined, and what they came to.


def plan_join(tip: Snapshot, tips: Sequence[Snapshot]) -> Ending:
    ending = plan_ending(tip, tips)
    if tips and (unfit := find_unfit(tip, tips[0], ending.meta)) is not None:
        raise unfit
    return ending


def find_problem_of_join(store: Store, tip: Snapshot) -> UwfError | None:
    """Return why ended branches of the thread at *tip*, which has split, cannot be joined."""
    heads = find_ends(store, tip)
    if heads is None:
        return find_unfit_end(store, tip)
    try:
        plan_join(tip, [read_snapshot(store, head.commit) for head in heads])
    except StoreDamaged:
        raise
    except UwfError as problem:
        return problem
    return None
