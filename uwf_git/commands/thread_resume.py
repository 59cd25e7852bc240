"""`uwf thread resume`: a paused thread goes on where it was.

Owns: when there is something to resume. Knows nothing of: agents; nothing runs by it.
Always true: a thread that was waiting or had failed when it was paused does so again.
Source: seeds 003 and 004 (resume).
"""

from uwf_git.commands.caller import Caller
from uwf_git.commands.steer import Signalled, Steered, signal_transition, steer_thread
from uwf_git.commands.thread_errors import WrongStatus
from uwf_git.model.signal import build_signal
from uwf_git.store.record import Transition
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store


def resume_thread(store: Store, caller: Caller, text: str, *, reason: str = "") -> Steered:
    """Let the thread that *text* means go on.

    A thread that waits for the end of a limit may try at once.

    Raises:
        WrongStatus: it is neither paused nor waiting for the end of a limit.
        What ``steer_thread`` raises.
    """

    def plan(snapshot: Snapshot) -> Transition:
        present = snapshot.get_present()
        status = snapshot.record.status
        waiting = present.waiting
        if status == "paused":
            to = present.paused_from or "ready"
        elif status == "waiting" and waiting is not None and waiting.until is not None:
            to = "ready"
        else:
            raise WrongStatus(snapshot, f"is {status}, not paused", _NEXT.get(status, _STEP))
        signal = build_signal("resume", timestamp=caller.now_ms(), reason=reason)
        signalled = Signalled("resume", to, "resumed", present.after_resume())
        return signal_transition(snapshot, signal, signalled)

    return steer_thread(store, caller, text, plan)


_STEP = "`uwf thread step {thread}` takes its next step"
_NEXT = {
    "failed": "`uwf thread retry {thread}` has it try again",
    "waiting": "`uwf thread answer {thread}` gives the answer that it waits for",
}
