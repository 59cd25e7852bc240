"""Check many fetched threads together, so that shared nodes are checked once and in one child.

A thread that does not pass must be checked alone to learn why: one finding fails its whole batch.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from uwf_git.commands.split.family import STRANGER_HINT, Strangers
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.known_heads import heads_of_store
from uwf_git.commands.verify.limited import first_finding
from uwf_git.commands.verify.thread import Claim, RefKind, ThreadChecks
from uwf_git.commands.verify.tree import TreeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

_MOST_AT_ONCE = 100
_PARENT = b"\nUwf-Parent-Thread: "


class Arrival(NamedTuple):
    """A fetched thread: its commit here, if it has one, and its commit at the remote."""

    thread: ThreadId
    known: Oid | None
    tip: Oid
    archived: bool

    @property
    def ref(self) -> str:
        """The ref that it is to have."""
        return (ARCHIVE if self.archived else ACTIVE) + self.thread


def pass_arrivals(store: Store, arrivals: Sequence[Arrival]) -> set[Arrival]:
    """Return the arrivals without findings; one finding fails its whole batch."""
    passed: set[Arrival] = set()
    # Branches after the threads that they share most of their history with.
    ordered = sorted(arrivals, key=lambda each: _has_parent(store, each))
    for batch in _batches(ordered):
        if first_finding(store, partial(check_arrivals, store, batch, passed)) is None:
            passed.update(batch)
    return passed


def check_arrivals(
    store: Store, batch: Sequence[Arrival], passed: Collection[Arrival] = ()
) -> Iterator[Finding]:
    """Check the arrivals in one run.

    What they share with threads that are here, and with those that have *passed*, is trusted.
    """
    heads = heads_of_store(store, {each.thread: each.tip for each in passed})
    checks = ThreadChecks(TreeChecks(store), heads)
    tips = {each.thread: each.tip for each in batch}
    strangers = Strangers(store.objects, lambda thread: [heads.find(thread), tips.get(thread)])
    for each in batch:
        place: RefKind = "archive" if each.archived else "active"
        yield from checks.check(Claim(each.ref, each.thread, each.tip, place), known=each.known)
        stranger = strangers.find_below(each.tip)
        if stranger is None and each.known is None:
            stranger = strangers.find_above(each.thread, each.tip)
        if stranger is not None:
            yield Finding(stranger, STRANGER_HINT, each.ref, each.tip)
    yield from checks.finish()


def _has_parent(store: Store, arrival: Arrival) -> bool:
    try:
        return _PARENT in read_commit(store.objects, arrival.tip).message
    except StoreDamaged:
        return False  # reported by the check


def _batches(arrivals: Sequence[Arrival]) -> Iterator[Sequence[Arrival]]:
    for start in range(0, len(arrivals), _MOST_AT_ONCE):
        yield arrivals[start : start + _MOST_AT_ONCE]
