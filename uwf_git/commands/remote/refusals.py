"""Check fetched threads and workflows before their objects are in the store, and drop the bad ones.

What is refused leaves nothing here: `git fsck` reads every object and ref of a store.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

from uwf_git.commands.remote.arrivals import Arrival, judge_arrivals, judge_together
from uwf_git.commands.remote.reconcile import Reconciled
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.puts import check_puts
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.walk import is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import Remote
from uwf_git.store.remotes.tracking import SharedRefs, track
from uwf_git.store.store import Store
from uwf_git.store.workflows.registry import WORKFLOWS


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
    workflows: set[tuple[str, Oid]]
    """The workflows that passed, each with its commit."""

    refused: list[Reconciled]


def judge_fetched(received: Store, here: SharedRefs, refs: Iterable[FetchedRef]) -> Judged:
    """Check *refs*; *received* is the store with the fetched objects, *here* are its own refs."""
    arrivals: list[Arrival] = []
    workflows: list[tuple[str, Oid, Oid | None]] = []
    for kind, name, oid in refs:
        # Of an archived thread, the active ref is not read any more.
        known = _known(received, here.find("threads" if kind == "archive" else kind, name), oid)
        if kind == "workflows":
            workflows.append((WORKFLOWS + name, oid, known))
        else:
            arrivals.append(Arrival(ThreadId(name), known, oid, kind == "archive"))
    bad = judge_together(received, workflows, partial(check_puts, received))
    passed, refused = judge_arrivals(received, arrivals)
    return Judged(
        passed,
        {each[:2] for each in workflows if each not in bad},
        [
            Reconciled("refused", ref, known, oid, finding)
            for (ref, oid, known), finding in bad.items()
        ]
        + view_refused(refused),
    )


def view_refused(refused: Mapping[Arrival, Finding]) -> list[Reconciled]:
    """Return what a fetch tells of the threads that it refused."""
    return [
        Reconciled("refused", each.ref, each.known, each.tip, finding)
        for each, finding in refused.items()
    ]


def _known(received: Store, here: Oid | None, there: Oid) -> Oid | None:
    """Return the commit *here* if *there* goes on from it: its history was checked before."""
    try:
        is_ahead = here is not None and is_descendant(received.objects, there, here)
    except StoreDamaged:
        return None
    return here if is_ahead else None


def forget_refused(store: Store, remote: Remote, reconciled: Iterable[Reconciled]) -> None:
    """Remove the tracking refs of what was refused: older versions and plain git fetch make them.

    Raises:
        RefLocked: another process holds the lock of one.
    """
    moves: dict[str, tuple[Oid | None, Oid | None]] = {
        each.ref.removeprefix("refs/"): (each.tracked, None)
        for each in reconciled
        if each.event == "refused"
    }
    track(store, remote, moves)
