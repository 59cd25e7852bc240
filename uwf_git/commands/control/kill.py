"""`uwf thread kill`: end a thread and archive it; a running agent is stopped first.

No step can begin meanwhile. What a stopped agent printed is recorded first, and so is what the
agent of a dead engine has finished. An agent may kill its own thread.

The branches of the thread end after it. If a crash comes in between, another kill of the thread
ends them, or the next step of one of them.
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.step.branches import sweep_branches
from uwf_git.commands.step.end_by_kill import end_by_kill
from uwf_git.commands.turn.active_thread import read_active
from uwf_git.commands.turn.begin_branch import resolve_or_begin
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result
from uwf_git.model.thread import keep_reason
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.snapshot import read_snapshot


def kill_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """End a thread and archive it, then its branches; stop their agents first.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId, ThreadNotActive: no active thread matches.
        ThreadBusy: another process is ending the thread, or the engine does not end.
        EndedElsewhere: the thread has ended at a remote, without the commits made here.
        AgentLeftRunning: the engine is dead and its agent cannot be stopped from here: another
            user or machine runs it, or its pid is unknown.
        HeadMoved: other processes moved the head at every try.
    """
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
