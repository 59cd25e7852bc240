"""`uwf gc`, and the same by itself when it is due: remove stale files, pack refs, pack objects.

And unite the small packs of steps, which is due some hundred times as often. It is safe while other
commands run; what it cannot do now, the next run does.
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from uwf_git.commands.worktree.record import list_parents
from uwf_git.errors import UwfError
from uwf_git.store.disk.locks import LockingUnsupported
from uwf_git.store.gc.packing import (
    NO_GIT,
    Counted,
    GcRuns,
    count_files,
    find_due,
    has_failed_lately,
    hold_gc_lock,
    is_detached,
    is_gc_running,
    pack_objects,
    take_gc_log,
    write_gc_log,
)
from uwf_git.store.gc.tidy import (
    claim_start,
    find_union,
    is_quick,
    pack_refs,
    pause_uniting,
    remove_stale_files,
    remove_stale_packs,
    unite_packs,
)
from uwf_git.store.git.config import find_program, shared_umask
from uwf_git.store.git.program import ProgramFailed, start_background_program
from uwf_git.store.store import Store


class Collected(NamedTuple):
    before: Counted
    after: Counted
    swept: int
    """How many leftovers of killed processes were removed."""

    last_failure: str | None
    """Why packing in the background had failed; returned once."""


def gc_store(store: Store, environ: Mapping[str, str]) -> Collected:
    """Pack objects and refs of *store*, and remove what killed processes left."""
    with shared_umask(store.config), hold_gc_lock(store), pause_uniting(store):
        last_failure = take_gc_log(store)
        before = count_files(store)
        swept = _remove_stale(store, environ)
        pack_refs(store)
        pack_objects(store, environ)
        return Collected(before, count_files(store), swept, last_failure)


def is_gc_due(store: Store) -> bool:
    """Check whether *store* is due for packing, at the price of three directory listings."""
    return bool(find_due(store)) and not has_failed_lately(store) and not is_gc_running(store)


def gc_if_due(store: Store, environ: Mapping[str, str]) -> bool:
    """Pack or unite what is due, and return whether anything was; a concurrent gc is no error."""
    due = find_due(store)
    if not due:
        return unite_packs(store) > 0
    try:
        with shared_umask(store.config), hold_gc_lock(store), pause_uniting(store):
            _remove_stale(store, environ)
            pack_refs(store)
            if due.objects:
                pack_objects(store, environ, auto=True)
                # Logged as a failure, so that packing is not repeated after each step.
                if find_due(store).objects:
                    why = "there are still many objects that no ref needs, too young to be deleted "
                    write_gc_log(store, f"{why}(gc.pruneExpire)")
    except GcRuns:
        return False
    return True


def gc_unwatched(store: Store, environ: Mapping[str, str]) -> bool:
    """Pack as ``gc_if_due``, in a process whose errors nobody sees.

    A failure is logged for the next `uwf gc`, and packing, but not uniting, is not tried again for
    a day.
    """
    try:
        if has_failed_lately(store):
            return unite_packs(store) > 0
        return gc_if_due(store, environ)
    except (UwfError, OSError) as error:
        write_gc_log(store, str(error))
        return False


def tidy(store: Store, environ: Mapping[str, str]) -> str | None:
    """Pack and unite what is due, in the background if it takes long; return what prevents it."""
    union, is_due = find_union(store), is_gc_due(store)
    needs_git = is_due and find_due(store).objects
    told = NO_GIT if needs_git and find_program("git", environ) is None else None
    if not is_detached(store.config):
        if is_due or union:
            gc_unwatched(store, environ)
        return told
    # Where there are no locks, no step comes so far.
    with suppress(LockingUnsupported):
        if is_due or not is_quick(union):
            if claim_start(store):
                argv = [sys.executable, "-m", "uwf_git", "gc", "--auto", "--detached"]
                argv += ["--format=json", "--repo", store.path]
                try:
                    start_background_program(argv, environ)
                except ProgramFailed as error:
                    write_gc_log(store, str(error))
        elif union:
            unite_packs(store)
    return told


def _remove_stale(store: Store, environ: Mapping[str, str]) -> int:
    removed = 0
    if any(True for _ in list_parents(store)):
        from uwf_git.commands.worktree.worktrees import sweep_worktrees  # noqa: PLC0415 (few stores have any)

        removed = sweep_worktrees(store, environ)
    return removed + remove_stale_files(store) + remove_stale_packs(store)
