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
    paused_before: WrongStatus | None = None
    try:
        steer_thread(store, caller, thread, lambda at: _plan(caller, at, reason))
    except WrongStatus as error:
        if not now:
            raise
        paused_before = error
    stopped = now and stop_agents(store, thread, reason=reason or "the thread was paused")
    if paused_before is not None and not stopped:
        raise paused_before
    # What was stopped is recorded after the pause.
    return tell_steered(read_snapshot(store, get_head(store, thread).commit).record)


def _plan(caller: Caller, snapshot: Snapshot, reason: str) -> Transition:
    status = snapshot.record.status
    if status == "paused":
        hint = "`uwf thread resume {thread}` lets it go on"
        raise WrongStatus(snapshot, "is paused already", hint)
    signal = build_signal("pause", timestamp=caller.now_ms(), reason=reason)
    present = snapshot.get_present().after_pause(status)
    return signal_transition(snapshot, signal, Signalled("pause", "paused", "paused", present))
