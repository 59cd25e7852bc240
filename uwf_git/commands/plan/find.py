"""Which thread carries out the plans of a work directory."""

import os

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.model.path_below import check_path_below
from uwf_git.model.thread import ENDED
from uwf_git.plan.settings import DEFAULTS, PlanSettings
from uwf_git.plan.state_file import read_state
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import find_head, list_threads
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

WORKFLOW = "plan-execute"
"""The name of the workflow; each of its threads has a directory of its own."""


def find_plan_thread(
    store: Store, workdir: str, settings: PlanSettings = DEFAULTS
) -> Snapshot | None:
    """Return the newest commit of the plan thread of *workdir*; None if it has none.

    The thread that its state file names comes first, then the newest that has not ended. An ended
    one is found by the state file alone.

    Raises:
        StoreDamaged: the thread cannot be read.
    """
    hint = read_state(workdir, state_file=settings.state_file).get("thread")
    named = None
    if isinstance(hint, str) and is_thread_id(hint):
        named = _read_plan_thread(store, ThreadId(hint), workdir)
    if named is not None and named.record.status not in ENDED:
        return named
    threads = list_threads(store, archived=False)
    found = (_read_plan_thread(store, thread, workdir) for thread in threads)
    return next((each for each in found if each and each.record.status not in ENDED), named)


def find_plan_dir(found: Snapshot | None, settings: PlanSettings = DEFAULTS) -> str:
    """Return the plan directory that a thread's state names, or the usual one."""
    named = None if found is None else found.get_present().state.get("planDir")
    return named if isinstance(named, str) and named.strip() else settings.plan_dir


def find_status_file(found: Snapshot | None, settings: PlanSettings = DEFAULTS) -> str:
    """Return the file in which the agents of a thread leave their reports, or the usual one.

    What no role may name as its file is not it either.
    """
    named = None if found is None else found.get_present().state.get("statusFile")
    if isinstance(named, str) and not check_path_below(named):
        return named
    return settings.status_file


def _read_plan_thread(store: Store, thread: ThreadId, workdir: str) -> Snapshot | None:
    """Return the tip of *thread* if it is one of the workflow, in this directory.

    The directory of an ended thread is not known any more.
    """
    known = find_workdir(store, thread)
    if known is not None and os.path.realpath(known) != os.path.realpath(workdir):
        return None
    head = find_head(store, thread)
    if head is None or (known is None and not head.archived):
        return None
    tip = read_snapshot(store, head.commit)
    return tip if tip.record.workflow_name == WORKFLOW else None
