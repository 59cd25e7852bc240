"""`uwf plan clean`: end the unfinished thread of a directory and remove what it left there."""

import os
import stat
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.control.stop import kill_thread
from uwf_git.commands.plan.plans import (
    find_plan_dir,
    find_plan_thread,
    find_status_file,
    require_rest,
)
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED
from uwf_git.plan.plan_files import find_plans
from uwf_git.plan.settings import DEFAULTS, PlanSettings
from uwf_git.store.store import Store

_REASON = "cleaned"


class Cleaned(NamedTuple):
    """What `uwf plan clean` has done."""

    ended: ThreadId | None
    """The thread that was ended; None if there was none to end."""

    removed: list[str]
    """The files, by their paths from the work directory."""


def clean_plans(
    store: Store | None,
    caller: Caller,
    workdir: str,
    settings: PlanSettings = DEFAULTS,
    *,
    with_plans: bool = False,
) -> Cleaned:
    """End the unfinished thread of *workdir* and remove its state files.

    With *with_plans* also the plan files, and nothing else; no link is followed.

    Raises:
        PlansAtWork: the thread is at work; nothing has changed.
        Refused, BadUsage: a folder is behind a link; nothing has changed.
        OSError: a file cannot be removed.
    """
    found = None if store is None else find_plan_thread(store, workdir, settings)
    thread = None if found is None else found.record.thread
    if store is not None and thread is not None:
        require_rest(store, thread)
    state_files = dict.fromkeys((settings.state_file, find_status_file(found, settings)))
    files = [path for path in state_files if _is_plain_file(workdir, path)]
    if with_plans:
        plans = find_plans(workdir, find_plan_dir(found, settings)).plans
        files += [plan.file for plan in plans if _is_plain_file(workdir, plan.file)]
    is_open = found is not None and found.record.status not in ENDED
    if store is not None and thread is not None and is_open:
        kill_thread(store, caller, thread, reason=_REASON)
    for path in files:
        os.unlink(os.path.join(workdir, path))
    return Cleaned(thread if is_open else None, files)


def _is_plain_file(workdir: str, path: str) -> bool:
    """Check whether *path* is a regular file there; a link is none."""
    folder = os.path.dirname(path)
    root = os.path.realpath(workdir)
    if os.path.realpath(os.path.join(root, folder)) != os.path.normpath(os.path.join(root, folder)):
        raise Refused(
            f"{folder} is a link, or lies behind one; nothing was removed",
            code="behind-link",
            hint="remove its files by hand, if they are yours",
            folder=folder,
        )
    try:
        return stat.S_ISREG(os.lstat(os.path.join(root, path)).st_mode)
    except OSError:
        return False
