"""Steer a thread by a commit that adds no step: resume, retry, patch."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from uwf_git.commands.agent_run.runs import PlayedHere, stop_agents
from uwf_git.commands.caller import Caller
from uwf_git.commands.inspect.show import find_stop
from uwf_git.commands.remote.fast_forward import fast_forward_from_tracking
from uwf_git.commands.split.family import walk_descendants
from uwf_git.commands.step.ending import end_by_kill
from uwf_git.commands.step.record_turn import record_at
from uwf_git.commands.step.step_thread import sweep_branches
from uwf_git.commands.turn.branches import (
    ThreadNotActive,
    WrongStatus,
    read_active,
    resolve_or_begin,
)
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result, read_thread_result
from uwf_git.engine.flow_state import find_patch_problem, find_state_problem
from uwf_git.errors import BadUsage
from uwf_git.model.event_folds import Cause, merge_patch
from uwf_git.model.event_rules import event_of
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node
from uwf_git.model.thread import build_signal, keep_reason
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import HeadMoved, get_head
from uwf_git.store.threads.lock import ThreadBusy, lock_briefly
from uwf_git.store.threads.record import NewCommit, build_next, read_standing
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

# Steer a thread: record a commit that changes how it goes on and adds no step.
#
# No lock is taken. The ref moves by compare-and-swap; a step that is under way is recorded on
# top. Source: seed 004, the runtime control protocol.

RESUME = "`uwf thread resume {thread}` lets it go on"

MOST_TRIES = 1000
"""The most tries to move a head that other processes move as well; each time a process succeeds."""

BuildCommit = Callable[[Snapshot], NewCommit]


def steer_thread(store: Store, caller: Caller, text: str, build: BuildCommit) -> ThreadResult:
    """Record what *build* returns on top of the thread that *text* names."""
    thread = read_active(store, text)[0].thread
    _catch_up(store, thread)
    return record_built(store, caller, thread, build)


def _catch_up(store: Store, thread: ThreadId) -> None:
    if store.has_remotes:
        # If an agent is at work, the next step takes over what a remote has.
        with suppress(ThreadBusy), lock_briefly(store, thread):
            fast_forward_from_tracking(store, thread)


def record_built(
    store: Store, caller: Caller, thread: ThreadId, build: BuildCommit
) -> ThreadResult:
    """Record what *build* returns on top of *thread*; build again if the head moved meanwhile."""
    for _ in range(MOST_TRIES):
        seen = read_active(store, thread)
        new = build(seen[1])
        with suppress(HeadMoved):
            return record_at(store, caller, seen, new)
    raise HeadMoved(thread)


def build_signalled(
    snapshot: Snapshot, cause: Cause, *, signal: Node, nodes: tuple[Node, ...] = ()
) -> NewCommit:
    event, kept = event_of(signal.payload["action"]), snapshot.as_kept(signal)
    before = read_standing(snapshot)
    return build_next(before, event, cause._replace(node=kept), nodes=(kept, *nodes))


# `uwf thread resume`: end a pause, or the wait for the end of an agent's limit. Nothing runs.
#
# The status is the status before the pause. Source: seeds 003 and 004 (resume).


def _do_other(store: Store, snapshot: Snapshot, problem: str) -> WrongStatus:
    # Braces of a role's name are no fields of the hint.
    told = find_stop(store, snapshot).advice.text.replace("{", "{{").replace("}", "}}")
    return WrongStatus(snapshot, problem, told)


def resume_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """Resume a paused thread; a thread that waits for the end of a limit may try at once."""

    def build(snapshot: Snapshot) -> NewCommit:
        before = read_standing(snapshot)
        status, waiting = before.record.status, before.state.waiting
        is_limited = status == "waiting" and waiting is not None and waiting.until is not None
        if status != "paused" and not is_limited:
            raise _do_other(store, snapshot, f"is {status}, not paused")
        signal = build_signal("resume", timestamp=caller.now_ms(), reason=reason)
        return build_signalled(snapshot, Cause(), signal=signal)

    return steer_thread(store, caller, text, build)


# `uwf thread retry`: allow a failed thread to try again, with all its retries. Nothing runs.
#
# The failed attempts stay in the history; the next prompt has the last error.

_DRIVE = "`uwf thread run {thread}` drives its branches"


def retry_thread(store: Store, caller: Caller, text: str, *, hint: str = "") -> ThreadResult:
    """Make a failed thread, or a split thread's failed branches, ready again; agents get *hint*."""

    def build(snapshot: Snapshot) -> NewCommit:
        status = snapshot.record.status
        if status != "failed":
            raise _do_other(store, snapshot, f"is {status}, and has not failed")
        signal = build_signal("retry", timestamp=caller.now_ms(), reason=hint)
        return build_signalled(snapshot, Cause(), signal=signal)

    thread = read_active(store, text)[0].thread
    _catch_up(store, thread)
    tip = read_active(store, thread)[1]
    if tip.record.status != "split":
        return steer_thread(store, caller, thread, build)
    for head, _branch in walk_descendants(store, tip):
        _catch_up(store, head.thread)
    failed = [
        head.thread
        for head, branch in walk_descendants(store, tip)
        if branch.record.status == "failed"
    ]
    if not failed:
        raise WrongStatus(tip, "has split, and none of its branches has failed", _DRIVE)
    for branch_thread in failed:
        # It may go on by itself meanwhile.
        with suppress(WrongStatus, ThreadNotActive):
            steer_thread(store, caller, branch_thread, build)
    said = f"{len(failed)} branch{'es' if len(failed) > 1 else ''} may try again"
    return build_thread_result(tip.record, said=said, commit=tip.commit.oid)


# `uwf thread patch`: change a thread's state by a JSON merge patch.
#
# An agent that is at work does not see the change; its own patch is applied afterwards. Source:
# seed 004 (patchState); RFC 7396, JSON merge patch.


def _bad_patch(problem: str) -> BadUsage:
    return BadUsage(
        f"the patch {problem}",
        code="bad-patch",
        hint='a JSON merge patch is an object: \'{"done": true, "draft": null}\' sets done and '
        "removes draft",
    )


def patch_thread(
    store: Store, caller: Caller, text: str, patch: Any, *, reason: str = ""
) -> ThreadResult:
    """Apply the JSON merge patch *patch* to a thread's state."""
    if not isinstance(patch, Mapping):
        raise _bad_patch("is not an object")
    if not patch:
        raise _bad_patch("is empty")

    def build(snapshot: Snapshot) -> NewCommit:
        if parse_workflow(snapshot.get_node(snapshot.record.workflow)).flow is not None:
            state = merge_patch(dict(snapshot.get_present().state), dict(patch))
            problem = find_patch_problem(patch) or find_state_problem(state)
            if problem is not None:
                raise _bad_patch(f"cannot be applied: {problem}")
        signal = build_signal("patch", timestamp=caller.now_ms(), reason=reason, patch=patch)
        return build_signalled(snapshot, Cause(), signal=signal)

    return steer_thread(store, caller, text, build)


# Stop a thread: pause it, before its next step or at once, or end it; agents are stopped.
#
# A pause is committed before an agent is stopped, so nothing starts in between; the stopped
# attempt is recorded after it. The pause is a commit of the thread alone: its branches look at
# the thread before each step, and --now stops their agents too. Source: seeds 003 and 004 (pause,
# interrupt).
#
# While a thread is killed no step can begin. What a stopped agent printed is recorded first, and
# so is what the agent of a dead engine has finished. An agent may kill its own thread. The
# branches end after the thread. After a crash in between, another kill of the thread ends the
# branches, or the next step of any of them.


def pause_thread(
    store: Store, caller: Caller, text: str, *, reason: str = "", now: bool = False
) -> ThreadResult:
    """Pause a thread after the step that is under way, or *now*.

    *now* stops a running agent, also of a paused thread; its output is kept as an attempt that does
    not count against its retries.
    """
    reason = keep_reason(reason)
    thread = read_active(store, text)[0].thread
    paused_before: WrongStatus | None = None
    try:
        steer_thread(store, caller, thread, lambda at: _build(caller, at, reason))
    except WrongStatus as error:
        paused_before = error
    stopped = now and _stop_all(store, thread, reason=reason or "the thread was paused")
    if paused_before is not None and not stopped:
        raise paused_before
    # The stopped attempt may have been recorded after the pause.
    tip = read_snapshot(store, get_head(store, thread).commit)
    return read_thread_result(tip)


def _stop_all(store: Store, thread: ThreadId, *, reason: str) -> bool:
    """Stop the agents of *thread* and of its branches; return whether there were any."""
    tip = read_snapshot(store, get_head(store, thread).commit)
    threads = [thread, *(head.thread for head, _ in walk_descendants(store, tip))]
    stopped = False
    for each in threads:
        # A Python function goes on; the pause counts when it returns.
        with suppress(PlayedHere):
            stopped |= stop_agents(store, each, reason=reason)
    return stopped


def _build(caller: Caller, snapshot: Snapshot, reason: str) -> NewCommit:
    if snapshot.record.status == "paused":
        raise WrongStatus(snapshot, "is paused already", RESUME)
    signal = build_signal("pause", timestamp=caller.now_ms(), reason=reason)
    return build_signalled(snapshot, Cause(), signal=signal)


def kill_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """End a thread and archive it, then its branches; stop their agents first."""
    reason = keep_reason(reason)
    thread, commit, _archived = resolve_or_begin(store, text)
    tip = read_snapshot(store, commit)
    if tip.record.status == "killed" and sweep_branches(store, caller, tip, reason=tip.body):
        return read_thread_result(tip)
    # A Python function goes on; its step ends the thread when it returns.
    with suppress(PlayedHere):
        end_by_kill(store, caller, read_active(store, thread)[0].thread, reason=reason)
        tip = read_snapshot(store, get_head(store, thread).commit)
        sweep_branches(store, caller, tip, reason=reason)
    return read_thread_result(tip)
