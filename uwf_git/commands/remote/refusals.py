"""Check fetched threads and workflows before their objects are in the store, and drop the bad ones.

What is refused leaves nothing here: `git fsck` reads every object and ref of a store.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from uwf_git.commands.remote.reconcile import Reconciled
from uwf_git.commands.verify.arrivals import Arrival, check_arrivals, pass_arrivals
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.limited import first_finding
from uwf_git.commands.verify.workflow import check_workflow
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.objects.ancestry import is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import Remote
from uwf_git.store.remotes.tracking import SharedRefs, track
from uwf_git.store.store import Store

Check = Callable[[], Iterator[Finding]]


class FetchedRef(NamedTuple):
    """A ref of the remote whose commit is not here yet."""

    kind: str
    """The folder below refs/."""

    name: str
    oid: Oid

    @property
    def ref(self) -> str:
        """Its full name."""
        return f"refs/{self.kind}/{self.name}"


class Judged(NamedTuple):
    """What a check of fetched refs found."""

    passed: set[Arrival]
    refused: list[Reconciled]


def judge_fetched(received: Store, here: SharedRefs, refs: Iterable[FetchedRef]) -> Judged:
    """Check *refs*; *received* is the store with the fetched objects, *here* are its own refs."""
    threads: list[tuple[FetchedRef, Arrival]] = []
    refused: list[Reconciled] = []
    for each in refs:
        # Of an archived thread, the active ref is not read any more.
        kind = each.kind if each.kind == "workflows" else "threads"
        known = _known(received, here.find(kind, each.name), each.oid)
        if each.kind == "workflows":
            check = partial(check_workflow, received, each.name, each.oid, known=known)
            refused += _refuse(received, each, known, check)
        else:
            archived = each.kind == "archive"
            threads.append((each, Arrival(ThreadId(each.name), known, each.oid, archived)))
    passed = pass_arrivals(received, [arrival for _each, arrival in threads])
    for each, arrival in threads:
        if arrival not in passed:
            check = partial(check_arrivals, received, [arrival])
            found = list(_refuse(received, each, arrival.known, check))
            refused += found
            passed.update([] if found else [arrival])
    return Judged(passed, refused)


def _known(received: Store, here: Oid | None, there: Oid) -> Oid | None:
    """Return the commit *here* if *there* goes on from it: its history was checked before."""
    try:
        is_ahead = here is not None and is_descendant(received.objects, there, here)
    except StoreDamaged:
        return None
    return here if is_ahead else None


def _refuse(
    received: Store, fetched: FetchedRef, known: Oid | None, check: Check
) -> Iterator[Reconciled]:
    try:
        finding = first_finding(received, check)
    except StoreDamaged as error:
        finding = Finding(error.message, error.hint or "see `git fsck`", fetched.ref, fetched.oid)
    if finding is not None:
        yield Reconciled("refused", fetched.ref, known, fetched.oid, finding)


def forget_refused(store: Store, remote: Remote, reconciled: Iterable[Reconciled]) -> None:
    """Remove the tracking refs of what was refused: older versions and plain git fetch make them.

    Raises:
        RefLocked: another process holds the lock of one.
    """
    for each in reconciled:
        if each.event == "refused" and each.tracked is not None:
            track(store, remote, each.ref.removeprefix("refs/"), seen=each.tracked, to=None)
