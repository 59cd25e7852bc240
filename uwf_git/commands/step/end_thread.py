"""End a thread: its last commit, then its move to the archive, then its local files.

The last commit adds no node; the head of the chain stays.
"""

from typing import Literal

from uwf_git.commands.agent_run.runs import forget_recorded_runs
from uwf_git.commands.caller import Caller
from uwf_git.commands.turn.turn import ThreadResult, build_thread_result
from uwf_git.engine.subject import count_steps
from uwf_git.model.event_folds import Cause
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import Head, archive_head
from uwf_git.store.threads.local_files import forget_workdir
from uwf_git.store.threads.lock import forget_lock
from uwf_git.store.threads.record import build_next, read_standing, record_next
from uwf_git.store.threads.snapshot import Snapshot


def end_thread(
    store: Store,
    caller: Caller,
    seen: tuple[Head, Snapshot],
    *,
    event: Literal["end", "kill"],
    body: str = "",
) -> ThreadResult:
    """End a thread whose lock the caller holds; *body* is the reason, if there is one.

    Raises:
        HeadMoved: another process moved the head.
    """
    head, snapshot = seen
    word = "completed" if event == "end" else "killed"
    said = f"{word} after {count_steps(snapshot.record.depth)}"
    new = build_next(read_standing(snapshot), event, Cause(), said=said)._replace(body=body)
    commit = record_next(store, snapshot, new, caller.signing(store))
    archive_head(store, head, commit)
    # A run that could not be recorded stays readable until gc finds it old.
    forget_recorded_runs(store, head.thread)
    forget_workdir(store, head.thread)
    forget_lock(store, head.thread)
    return build_thread_result(new.record, said=said, commit=commit)
