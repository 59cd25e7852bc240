"""`uwf thread resume`: end a pause, or the wait for the end of an agent's limit. Nothing runs.

The status is that of before the pause. Source: seeds 003 and 004 (resume).
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.control.steer import build_signalled, steer_thread
from uwf_git.commands.turn.active_thread import WrongStatus
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.model.event_folds import Cause
from uwf_git.model.thread import build_signal
from uwf_git.store.store import Store
from uwf_git.store.threads.record import NewCommit, read_standing
from uwf_git.store.threads.snapshot import Snapshot

_STEP = "`uwf thread step {thread}` takes its next step"
_NEXT = {
    "failed": "`uwf thread retry {thread}` has it try again",
    "waiting": "`uwf thread answer {thread}` gives the answer that it waits for",
}


def resume_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> ThreadResult:
    """Resume a paused thread; one that waits for the end of a limit may try at once.

    Raises:
        WrongStatus: the thread is neither paused nor waiting for the end of a limit.
        What ``steer_thread`` raises.
    """

    def build(snapshot: Snapshot) -> NewCommit:
        before = read_standing(snapshot)
        status, waiting = before.record.status, before.state.waiting
        is_limited = status == "waiting" and waiting is not None and waiting.until is not None
        if status != "paused" and not is_limited:
            raise WrongStatus(snapshot, f"is {status}, not paused", _NEXT.get(status, _STEP))
        signal = build_signal("resume", timestamp=caller.now_ms(), reason=reason)
        return build_signalled(before, Cause(), signal=signal)

    return steer_thread(store, caller, text, build)
