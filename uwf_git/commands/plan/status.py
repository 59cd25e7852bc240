"""`uwf plan status` and `uwf plan plans`: where the thread of a directory stands, and its plans."""

from contextlib import suppress
from typing import Any

from uwf_git.commands.plan.at_work import hold_plans
from uwf_git.commands.plan.find import find_plan_dir, find_plan_thread
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED
from uwf_git.plan.phases import (
    IDLE,
    ListedPlan,
    PlanState,
    build_state_document,
    fold_story,
    list_plan_rows,
)
from uwf_git.plan.plan_files import find_plans
from uwf_git.plan.settings import DEFAULTS, PlanSettings
from uwf_git.plan.state_file import read_state, write_state
from uwf_git.plan.story import read_story
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.snapshot import Snapshot


def read_plan_status(
    store: Store | None, workdir: str, settings: PlanSettings = DEFAULTS
) -> dict[str, Any]:
    """Return where the plan thread of *workdir* stands, in the form of the state file.

    A state file that was deleted comes back while the thread lives, and one that is not true any
    more, since somebody else drove or the driver was killed, is mended. *store* is None if there
    is no store yet.

    Raises:
        StoreDamaged: the thread cannot be read.
    """
    found = None if store is None else find_plan_thread(store, workdir, settings)
    if store is None or found is None:
        return build_state_document(IDLE, {})
    state = _read_state_of(store, found)
    thread = found.record.thread
    where = find_where(store, workdir, thread, settings)
    if "port" in where or found.record.status not in ENDED:
        # Where nothing can be written, it can still be told.
        with suppress(OSError), hold_plans(store):
            # Whoever drives may have written something newer.
            if get_head(store, thread).commit == found.commit.oid:
                where = find_where(store, workdir, thread, settings)
                write_state(workdir, state, where, state_file=settings.state_file)
    return build_state_document(state, where)


def find_where(
    store: Store, workdir: str, thread: ThreadId, settings: PlanSettings = DEFAULTS
) -> dict[str, Any]:
    """Return the thread and the store, and where its state file says that its driver listens."""
    known = read_state(workdir, state_file=settings.state_file)
    listens = {"address": known.get("address"), "port": known.get("port")}
    is_known = known.get("thread") == thread
    return {"thread": thread, "repo": store.path} | (listens if is_known else {})


def read_plan_rows(
    store: Store | None, workdir: str, settings: PlanSettings = DEFAULTS
) -> list[dict[str, Any]]:
    """List the plans of *workdir* with their status, by number.

    Raises:
        BadUsage: the plan directory is not below *workdir*.
        StoreDamaged: the thread cannot be read.
        OSError: the plan directory cannot be listed.
    """
    found = None if store is None else find_plan_thread(store, workdir, settings)
    state = IDLE if store is None or found is None else _read_state_of(store, found)
    on_disk = find_plans(workdir, find_plan_dir(found, settings)).plans
    return list_plan_rows(state, [ListedPlan(*plan) for plan in on_disk])


def _read_state_of(store: Store, tip: Snapshot) -> PlanState:
    return fold_story(read_story(store, tip.commit.oid))
