"""Checking arrivals: many threads that came at once, before any of them is taken over.

Owns: looking at them together, so that what they share is looked at once and no process is
started for each. Knows nothing of: what is done with them.
Always true: what it lets pass has no trouble, and neither has anything that was looked at
together with it; whoever is not let pass has to be checked alone, to be told why.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from uwf_git.commands.check_thread import Claim, ThreadChecks
from uwf_git.commands.check_tree import TreeChecks
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store

_MOST_AT_ONCE = 100


class Arrival(NamedTuple):
    """A thread that is to be taken over: from where it is here, if it is, to where it is there."""

    thread: ThreadId
    known: Oid | None
    tip: Oid
    archived: bool

    @property
    def ref(self) -> str:
        """Give the ref that it is to have."""
        return (ARCHIVE if self.archived else ACTIVE) + self.thread


def pass_arrivals(store: Store, arrivals: Sequence[Arrival]) -> set[Arrival]:
    """Give those of *arrivals* that are all right; one with troubles spoils it for its batch."""
    passed: set[Arrival] = set()
    for batch in _batches(arrivals):
        checks = ThreadChecks(TreeChecks(store))
        if (
            not any(_is_wrong(checks, each) for each in batch)
            and next(checks.finish(), None) is None
        ):
            passed.update(batch)
    return passed


def _batches(arrivals: Sequence[Arrival]) -> Iterator[Sequence[Arrival]]:
    for start in range(0, len(arrivals), _MOST_AT_ONCE):
        yield arrivals[start : start + _MOST_AT_ONCE]


def _is_wrong(checks: ThreadChecks, arrival: Arrival) -> bool:
    claim = Claim(
        arrival.ref, arrival.thread, arrival.tip, "archive" if arrival.archived else "active"
    )
    return next(checks.check(claim, known=arrival.known), None) is not None
