"""Receiving: what a push may do to a shared store, and what it may not.

Owns: the order of the checks: names, then moves (receive_moves.py), then what the commits hold
(check_*.py), from the stored tip on.
Knows nothing of: hooks, quarantine, which side of a connection this is.
Always true: a push is judged as a whole; nothing is written. Branches, tags and everything else
that is not ours passes.
Source: FORMAT.md, "Refs". git's receive.deny* protect branches only, and its `update` hook sees
one ref at a time, so it cannot tell a deletion from a move to the archive.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from uwf_git.commands.check_put_nodes import check_put_nodes
from uwf_git.commands.check_thread import check_thread
from uwf_git.commands.check_workflow import check_workflow
from uwf_git.commands.receive_limits import read_limits
from uwf_git.commands.receive_moves import Push, find_bad_move
from uwf_git.commands.receive_names import find_bad_name
from uwf_git.commands.ref_update import RefUpdate, Refusal, ours_among
from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.limited_objects import LimitedObjects
from uwf_git.store.refs import Oid
from uwf_git.store.registry import WORKFLOWS
from uwf_git.store.store import Store

__all__ = ["RefUpdate", "Refusal", "check_received"]

_MOST_TOLD = 10


def check_received(store: Store, updates: Sequence[RefUpdate]) -> list[Refusal]:
    """Give what is wrong with a push of *updates* into *store*; nothing if it may go through.

    *store* has the refs as they are before the push, and the objects as they are after it.

    Raises:
        BadLimit: the store's own settings mean nothing.
        OSError: the machine would not let it be read.
    """
    limits = read_limits(store.config)
    objects = LimitedObjects(store.objects, most_blob_bytes=limits.most_blob_bytes)
    push = Push(store._replace(objects=objects), {each.name: each for each in updates})
    return [refusal for update in ours_among(updates) for refusal in _check(push, update)]


def _check(push: Push, update: RefUpdate) -> Iterator[Refusal]:
    try:
        refusal = find_bad_name(push, update) or find_bad_move(push, update)
    except StoreDamaged as error:
        refusal = Refusal(update.name, error.message, error.hint or "see `git fsck`")
    if refusal is not None:
        yield refusal
    elif update.new is not None:
        yield from _check_content(push, update, update.new)


def _check_content(push: Push, update: RefUpdate, tip: Oid) -> Iterator[Refusal]:
    troubles = _troubles(push, update.name, tip)
    for trouble in islice(troubles, _MOST_TOLD):
        yield Refusal(update.name, trouble.message, trouble.hint)
    if next(troubles, None) is not None:
        hint = f"`uwf verify {update.name}` tells all, where it was pushed from"
        yield Refusal(update.name, "there is more that is wrong with it", hint)


def _troubles(push: Push, name: str, tip: Oid) -> Iterator[Trouble]:
    """Check what is new below *tip*, which stands on what is stored."""
    store = push.store
    if name.startswith(ACTIVE):
        thread = ThreadId(name.removeprefix(ACTIVE))
        return check_thread(store, thread, tip, archived=False, known=store.refs.find(name))
    if name.startswith(ARCHIVE):
        thread = ThreadId(name.removeprefix(ARCHIVE))
        known = store.refs.find(ACTIVE + thread)
        return check_thread(store, thread, tip, archived=True, known=known)
    if name.startswith(WORKFLOWS):
        workflow = name.removeprefix(WORKFLOWS)
        return check_workflow(store, workflow, tip, known=store.refs.find(name))
    return check_put_nodes(store, tip, known=store.refs.find(name))
