"""`uwf thread pause`: no further step is taken until somebody resumes the thread.

Owns: when a thread may be paused, and what --now does besides.
Always true: the pause is a commit before anything is stopped, so that nothing begins anew; a step
that is under way is recorded after it. Source: seeds 003 and 004 (pause, interrupt).
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.steer import (
    Signalled,
    Steered,
    signal_transition,
    steer_thread,
    tell_steered,
)
from uwf_git.commands.stop_agent import stop_agents
from uwf_git.commands.thread_errors import WrongStatus, read_active
from uwf_git.model.signal import build_signal
from uwf_git.store.heads import get_head
from uwf_git.store.record import Transition
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store


def pause_thread(
    store: Store, caller: Caller, text: str, *, reason: str = "", now: bool = False
) -> Steered:
    """Pause the thread that *text* means, after the step that is under way, or *now*.

    *now* ends an agent that is at work; what it had printed is kept as a failed try, which does
    not count against its retries. A thread that is paused already can be paused *now* as well.

    Raises:
        WrongStatus: it is paused already.
        ThreadBusy: its agent was stopped, and its engine did not come to an end.
        What ``steer_thread`` raises.
    """
    thread = read_active(store, text)[0].thread
    is_paused = now and read_active(store, thread)[1].record.status == "paused"
    if not is_paused:
        steer_thread(store, caller, thread, lambda snapshot: _plan(caller, snapshot, reason))
    stopped = now and stop_agents(store, thread, reason=reason or "the thread was paused")
    snapshot = read_snapshot(store, get_head(store, thread).commit)
    if is_paused and not stopped:
        raise _paused_already(snapshot)
    return tell_steered(snapshot.record)


def _plan(caller: Caller, snapshot: Snapshot, reason: str) -> Transition:
    status = snapshot.record.status
    if status == "paused":
        raise _paused_already(snapshot)
    signal = build_signal("pause", timestamp=caller.now_ms(), reason=reason)
    present = snapshot.get_present().after_pause(status)
    return signal_transition(snapshot, signal, Signalled("pause", "paused", "paused", present))


def _paused_already(snapshot: Snapshot) -> WrongStatus:
    return WrongStatus(snapshot, "is paused already", "`uwf thread resume {thread}` lets it go on")
