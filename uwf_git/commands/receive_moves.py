"""Moves: how a push may change a ref of ours.

Owns: the rules of threads, archive and the rest: forward only, and one deletion.
Knows nothing of: names, what commits hold.
Always true: the stored tip decides, not what the pusher believes to be there. Of a thread that
ends, the archive may come with the deletion of the active ref (`uwf push`), or without it, as
plain `git push` brings it: then the active one is litter, and swept after the push.
"""

from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.commands.ref_update import RefUpdate, Refusal
from uwf_git.store.descent import descends
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store


class Push(NamedTuple):
    """All that a push would change, and the store before it."""

    store: Store
    updates: Mapping[str, RefUpdate]
    """By the name of the ref."""

    def find_coming(self, name: str) -> Oid | None:
        """Give where *name* will point after the push; None if it will not be there."""
        update = self.updates.get(name)
        return self.store.refs.find(name) if update is None else update.new


def find_bad_move(push: Push, update: RefUpdate) -> Refusal | None:
    """Tell what is wrong with the way in which *update* changes its ref; None if nothing is.

    Raises:
        DamagedCommit: what it is to point at is no commit, or stands on none.
    """
    stored = push.store.refs.find(update.name)
    if stored == update.new:
        return None
    if update.name.startswith(ACTIVE):
        return _check_active(push, update, stored)
    if update.name.startswith(ARCHIVE):
        return _check_archived(push, update, stored)
    if update.new is None:
        return _deleted(update.name)
    return _check_forward(push, update, update.new, stored)


def _check_active(push: Push, update: RefUpdate, stored: Oid | None) -> Refusal | None:
    thread = update.name.removeprefix(ACTIVE)
    archive = ARCHIVE + thread
    ended = push.store.refs.find(archive)
    coming = ended or push.find_coming(archive)
    if update.new is None:
        return _check_deletion(push, update.name, stored, coming)
    if ended is not None:
        return Refusal(
            update.name,
            f"thread {thread} has ended, and is archived here",
            "`uwf fetch` brings the archive and sweeps this ref; to go on from a step of it: "
            f"`uwf thread fork {thread}`",
        )
    if coming is not None and not descends(push.store.objects, coming, update.new):
        return Refusal(
            update.name,
            "the same push archives the thread at a commit that does not descend from it",
            "`uwf fetch` shows both sides",
        )
    return _check_forward(push, update, update.new, stored)


def _check_deletion(
    push: Push, name: str, stored: Oid | None, coming: Oid | None
) -> Refusal | None:
    if stored is None:
        return None
    if coming is None:
        return _deleted(name)
    if descends(push.store.objects, coming, stored):
        return None
    return Refusal(
        name,
        f"it is at {stored} here, and the archive that takes its place does not descend from it",
        "`uwf fetch` shows both sides; somebody has gone on with the thread",
    )


def _check_archived(push: Push, update: RefUpdate, stored: Oid | None) -> Refusal | None:
    if stored is not None:
        done = "deleted" if update.new is None else "moved"
        return Refusal(
            update.name,
            f"an archived thread is never {done}; it ended at {stored}",
            "leave this ref out of the push",
        )
    if update.new is None:
        return None
    active = push.store.refs.find(ACTIVE + update.name.removeprefix(ARCHIVE))
    return _check_forward(push, update, update.new, active)


def _check_forward(push: Push, update: RefUpdate, new: Oid, stored: Oid | None) -> Refusal | None:
    if stored is None or descends(push.store.objects, new, stored):
        return None
    return Refusal(
        update.name,
        f"{new} does not descend from {stored}, where it is here: history is never rewritten",
        "`uwf fetch` shows both sides, and how to keep yours as a fork",
    )


def _deleted(name: str) -> Refusal:
    return Refusal(
        name,
        "it would be lost: only a thread that the same push archives is deleted here",
        "leave this ref out of the push; `git push --mirror` and `--prune` delete what you "
        "do not have",
    )
