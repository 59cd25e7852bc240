"""`uwf thread retry`: a failed thread may try again, with all its retries.

Owns: when there is something to retry. Knows nothing of: agents; nothing runs by it.
Always true: the tries so far stay in the history, and the next prompt tells why the last failed.
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.steer import Signalled, Steered, signal_transition, steer_thread
from uwf_git.commands.thread_errors import WrongStatus
from uwf_git.model.signal import build_signal
from uwf_git.store.record import Transition
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store


def retry_thread(store: Store, caller: Caller, text: str, *, hint: str = "") -> Steered:
    """Let the thread that *text* means try again; its agent is told *hint*.

    Raises:
        WrongStatus: it has not failed.
        What ``steer_thread`` raises.
    """

    def plan(snapshot: Snapshot) -> Transition:
        status = snapshot.record.status
        if status != "failed":
            problem = f"is {status}, and has not failed"
            raise WrongStatus(snapshot, problem, _NEXT.get(status, _STEP))
        signal = build_signal("retry", timestamp=caller.now_ms(), reason=hint)
        present = snapshot.get_present().after_retry(hint)
        return signal_transition(
            snapshot, signal, Signalled("retry", "ready", "may try again", present)
        )

    return steer_thread(store, caller, text, plan)


_STEP = "`uwf thread step {thread}` takes its next step"
_NEXT = {
    "paused": "`uwf thread resume {thread}` lets it go on",
    "waiting": "`uwf thread show {thread}` tells what it waits for",
}
