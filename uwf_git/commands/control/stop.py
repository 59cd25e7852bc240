"""Stop a thread: pause it, before its next step or at once, or end it; agents are stopped.

A pause is committed before an agent is stopped, so nothing starts in between; the stopped attempt
is recorded after it. The pause is a commit of the thread alone: its branches look at the thread
before each step, and --now stops their agents too. Source: seeds 003 and 004 (pause, interrupt).

While a thread is killed no step can begin. What a stopped agent printed is recorded first, and so
is what the agent of a dead engine has finished. An agent may kill its own thread. The branches end
after the thread. After a crash in between, another kill of the thread ends the branches, or the
next step of any of them.
"""

from uwf_git.commands.agent_run.runs import stop_agents
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.steer import RESUME, build_signalled, steer_thread
from uwf_git.commands.split.family import walk_descendants
from uwf_git.commands.step.branches import sweep_branches
from uwf_git.commands.step.ending import end_by_kill
from uwf_git.commands.turn.active_thread import WrongStatus, read_active
from uwf_git.commands.turn.branches import resolve_or_begin
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import build_signal, keep_reason
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.record import NewCommit, read_standing
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


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
    said = tip.subject.partition(": ")[2]
    return build_thread_result(tip.record, said=said, commit=tip.commit.oid)


def _stop_all(store: Store, thread: ThreadId, *, reason: str) -> bool:
    """Stop the agents of *thread* and of its branches; return whether there were any."""
    tip = read_snapshot(store, get_head(store, thread).commit)
    threads = [thread, *(head.thread for head, _ in walk_descendants(store, tip))]
    stopped = [stop_agents(store, each, reason=reason) for each in threads]
    return any(stopped)


def _build(caller: Caller, snapshot: Snapshot, reason: str) -> NewCommit:
    if snapshot.record.status == "paused":
        raise WrongStatus(snapshot, "is paused already", RESUME)
    signal = build_signal("pause", timestamp=caller.now_ms(), reason=reason)
    return build_signalled(read_standing(snapshot), Cause(), signal=signal)


def kill_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """End a thread and archive it, then its branches; stop their agents first."""
    reason = keep_reason(reason)
    thread, commit, _archived = resolve_or_begin(store, text)
    tip = read_snapshot(store, commit)
    if tip.record.status == "killed" and sweep_branches(store, caller, tip, reason=tip.body):
        said = tip.subject.partition(": ")[2]
        return build_thread_result(tip.record, said=said, commit=tip.commit.oid)
    killed = end_by_kill(store, caller, read_active(store, thread)[0].thread, reason=reason)
    tip = read_snapshot(store, get_head(store, thread).commit)
    sweep_branches(store, caller, tip, reason=reason)
    return killed
