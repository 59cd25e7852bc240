"""`uwf thread retry`: allow a failed thread to try again, with all its retries. Nothing runs.

The failed attempts stay in the history; the next prompt has the last error.
"""

from contextlib import suppress

from uwf_git.commands.caller import Caller
from uwf_git.commands.control.steer import build_signalled, steer_thread
from uwf_git.commands.split.family import walk_descendants
from uwf_git.commands.turn.active_thread import ThreadNotActive, WrongStatus, read_active
from uwf_git.commands.turn.next_move import NextMove, advise
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result
from uwf_git.model.event_folds import Cause
from uwf_git.model.thread import build_signal
from uwf_git.store.store import Store
from uwf_git.store.threads.record import NewCommit, read_standing
from uwf_git.store.threads.snapshot import Snapshot

_DRIVE = "`uwf thread run {thread}` drives its branches"
_STEP = "`uwf thread step {thread}` takes its next step"
_NEXT = {
    "paused": "`uwf thread resume {thread}` lets it go on",
}


def retry_thread(store: Store, caller: Caller, text: str, *, hint: str = "") -> ThreadResult:
    """Make a failed thread ready again; *hint* goes into the agent's next prompt.

    Of a thread that has split, those of its branches that have failed.

    Raises:
        WrongStatus: neither the thread nor a branch of it has failed.
        What ``steer_thread`` raises.
    """

    def build(snapshot: Snapshot) -> NewCommit:
        status = snapshot.record.status
        if status != "failed":
            problem = f"is {status}, and has not failed"
            told = _NEXT.get(status, _STEP)
            if status == "waiting":
                # Braces of a role's name are no fields of the hint.
                told = advise(store, snapshot, NextMove()).text
                told = told.replace("{", "{{").replace("}", "}}")
            raise WrongStatus(snapshot, problem, told)
        signal = build_signal("retry", timestamp=caller.now_ms(), reason=hint)
        return build_signalled(read_standing(snapshot), Cause(), signal=signal)

    tip = read_active(store, text)[1]
    if tip.record.status != "split":
        return steer_thread(store, caller, tip.record.thread, build)
    failed = [
        head.thread
        for head, branch in walk_descendants(store, tip)
        if branch.record.status == "failed"
    ]
    if not failed:
        raise WrongStatus(tip, "has split, and none of its branches has failed", _DRIVE)
    for thread in failed:
        # It may go on by itself meanwhile.
        with suppress(WrongStatus, ThreadNotActive):
            steer_thread(store, caller, thread, build)
    said = f"{len(failed)} branch{'es' if len(failed) > 1 else ''} may try again"
    return build_thread_result(tip.record, said=said, commit=tip.commit.oid)
