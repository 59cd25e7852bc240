"""`uwf gc`: the store is packed and swept.

Owns: the order lock, sweep, refs, objects; and packing by itself, when it is due.
Knows nothing of: how anything is packed, who asks.
Always true: it is safe beside everything that runs; what it cannot do now, the next one does.
"""

import sys
from typing import NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.errors import Refused, UwfError
from uwf_git.store.gc_lock import GcRuns, hold_gc_lock, is_gc_running
from uwf_git.store.gc_log import has_failed_lately, take_gc_log, write_gc_log
from uwf_git.store.litter import sweep_litter
from uwf_git.store.pack_litter import sweep_pack_litter
from uwf_git.store.pack_refs import pack_refs
from uwf_git.store.pack_writing import PackingOvertaken
from uwf_git.store.packing import Counted, Packer, count_files, pack_objects
from uwf_git.store.packing_policy import find_due, is_detached
from uwf_git.store.program import ProgramFailed, start_detached
from uwf_git.store.shared_mode import shared_umask
from uwf_git.store.store import Store


class NotKept(Refused):
    """A store in memory has nothing to pack."""

    code = "not-kept"

    def __init__(self) -> None:
        super().__init__("a store in memory cannot be packed")


class Collected(NamedTuple):
    """A store that was packed."""

    packer: Packer
    before: Counted
    after: Counted
    swept: int
    """How many things that killed processes had left were removed."""

    last_failure: str | None
    """Why packing in the background had failed, told once."""


def gc_store(store: Store, caller: Caller) -> Collected:
    """Pack objects and refs of *store*, and sweep what killed processes left.

    Raises:
        GcRuns, PackingOvertaken: another program packs it.
        ProgramFailed: git could not pack it, and says why.
        BadRef, BadPackedRefs, RefLocked: its refs cannot be packed.
    """
    if not store.is_kept:
        raise NotKept
    with shared_umask(store.config), hold_gc_lock(store):
        last_failure = take_gc_log(store)
        before = count_files(store)
        swept = _sweep(store)
        pack_refs(store)
        packer = pack_objects(store, caller.environ)
        return Collected(packer, before, count_files(store), swept, last_failure)


def is_gc_due(store: Store) -> bool:
    """Tell whether *store* should be packed by itself now: it is due, and nothing speaks against.

    Asked after every command that writes, so it costs three directory listings.
    """
    return bool(find_due(store)) and not has_failed_lately(store) and not is_gc_running(store)


def gc_if_due(store: Store, caller: Caller) -> bool:
    """Pack what of *store* is due, and tell whether anything was; another gc is no failure.

    Raises:
        What ``gc_store`` raises else.
    """
    due = find_due(store)
    if not due:
        return False
    try:
        with shared_umask(store.config), hold_gc_lock(store):
            _sweep(store)
            pack_refs(store)
            if due.objects:
                packer = pack_objects(store, caller.environ, auto=True)
                _note_if_still_due(store, packer)
    except (GcRuns, PackingOvertaken):
        return False
    return True


def gc_unwatched(store: Store, caller: Caller) -> bool:
    """Pack what of *store* is due, as ``gc_if_due``, where nobody would see an error.

    What fails is kept for the next `uwf gc`, and not tried again for a day.
    """
    if has_failed_lately(store):
        return False
    try:
        return gc_if_due(store, caller)
    except (UwfError, OSError) as error:
        write_gc_log(store, str(error))
        return False


def start_gc(store: Store, caller: Caller) -> None:
    """Pack *store*, for which it is due: in the background, unless git config says otherwise."""
    if not is_detached(store.config):
        gc_unwatched(store, caller)
        return
    argv = [sys.executable, "-m", "uwf_git", "gc", "--auto", "--detached", "--repo", store.path]
    try:
        start_detached(argv, caller.environ)
    except ProgramFailed as error:
        write_gc_log(store, str(error))


def _sweep(store: Store) -> int:
    return sweep_litter(store) + sweep_pack_litter(store)


def _note_if_still_due(store: Store, packer: Packer) -> None:
    """Keep it from being tried again after every step."""
    if find_due(store).objects:
        git_could = "; or there are many packs, which only git puts together"
        write_gc_log(
            store,
            "there are still many loose objects, which no ref needs and which are too young to go "
            "(gc.pruneExpire)" + (git_could if packer == "dulwich" else ""),
        )
