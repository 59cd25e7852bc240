"""`uwf verify`: check every ref, refs against one another, and the files that git reads.

Nothing is written; each commit and node is checked once in a run. Bare repositories have no
reflogs, so a history that was rewritten here shows only against what a remote last had.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from uwf_git.commands.split.family import STRANGER_HINT, Strangers
from uwf_git.commands.verify.files import check_files, find_hub_gap
from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.puts import check_put_ref
from uwf_git.commands.verify.targets import Target, find_targets
from uwf_git.commands.verify.thread import Claim, RefKind, ThreadChecks
from uwf_git.commands.verify.tree import TreeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.walk import is_descendant
from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import BadRef
from uwf_git.store.remotes.divergence import RemoteHeads
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE

MOST_TOLD = 10_000

_OTHER_WAY = (
    "both are kept; `git log {here} ^{there}` shows what is only here; "
    "`uwf thread fork {thread} --at {here}` makes that a thread of its own, and this one goes on "
    "as it is there"
)


class Counts(NamedTuple):
    """What was checked, each thing counted once."""

    threads: int
    workflows: int
    commits: int
    nodes: int


class VerifyResult(NamedTuple):
    checked: Counts
    troubles: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    """What is no damage: oddities, divergence from remotes, settings that let pushes pass."""

    targets: tuple[Target, ...]

    unsigned: int = 0
    """How many of the checked commits have no signature: nothing proves who made them."""


def verify(store: Store, texts: list[str]) -> VerifyResult:
    """Check the refs that *texts* name (see ``find_targets``), or the whole store and its files."""
    targets = find_targets(store, texts)
    run = _Run(store, targets)
    refs = {each.ref for each in targets}
    found = run.check() if texts else chain(run.check(), check_files(store, refs))
    troubles = tuple(islice(found, MOST_TOLD))
    gap = None if texts else find_hub_gap(store.path)
    if gap is not None:
        run.notes.append(gap)
    return run.conclude(troubles)


class _Run:
    def __init__(self, store: Store, targets: list[Target]) -> None:
        self._store, self._targets = store, targets
        self._trees = TreeChecks(store)
        self._threads = ThreadChecks(self._trees)
        refs = (ARCHIVE, ACTIVE)
        self._strangers = Strangers(
            self._trees.recent, lambda thread: (self._find(each + thread) for each in refs)
        )
        self.notes: list[Finding] = []

    def conclude(self, troubles: tuple[Finding, ...]) -> VerifyResult:
        trees, targets = self._trees, self._targets
        threads = {each.name for each in targets if each.kind in {"active", "archive"}}
        workflows = sum(each.kind == "workflow" for each in targets)
        checked = Counts(len(threads), workflows, trees.commits, trees.nodes.count)
        return VerifyResult(checked, troubles, tuple(self.notes), tuple(targets), trees.unsigned)

    def check(self) -> Iterator[Finding]:
        for target in self._targets:
            yield from self._check(target)
        yield from self._threads.finish()
        self.notes += self._note_divergence()

    def _check(self, target: Target) -> Iterator[Finding]:
        tip = target.tip
        if tip is None:
            error = BadRef(target.ref)
            yield Finding(error.message, error.hint or "", target.ref)
        elif target.kind in {"workflow", "nodes"}:
            yield from check_put_ref(self._trees, target.ref, tip)
        else:
            yield from self._check_thread(target, tip)

    def _check_thread(self, target: Target, tip: Oid) -> Iterator[Finding]:
        place: RefKind = target.kind if target.kind in {"active", "archive"} else "kept"
        archived = self._find(ARCHIVE + target.name) if place == "active" else None
        if archived is not None:
            yield from self._compare_with_archive(target, tip, archived)
            # The status is checked on the archived ref.
            place = "kept"
        yield from self._threads.check(Claim(target.ref, ThreadId(target.name), tip, place))
        stranger = None if place == "kept" else self._strangers.find_below(tip)
        if stranger is not None:
            yield Finding(stranger, STRANGER_HINT, target.ref, tip)

    def _compare_with_archive(self, target: Target, tip: Oid, archived: Oid) -> Iterator[Finding]:
        if not is_descendant(self._store.objects, archived, tip):
            yield Finding(
                f"thread {target.name} went on after it was archived: {target.ref} is at {tip}, "
                f"and {ARCHIVE}{target.name} at {archived}",
                _OTHER_WAY.format(thread=target.name, here=tip, there=archived),
                target.ref,
                tip,
            )
        # It may have been archived since the refs were listed.
        elif self._find(target.ref) is not None:
            self.notes.append(
                Finding(
                    f"thread {target.name} is archived, and still has its active ref",
                    "it does no harm, and `uwf gc` sweeps it away",
                    target.ref,
                    tip,
                )
            )

    def _find(self, ref: str) -> Oid | None:
        try:
            return self._store.refs.find(ref)
        except StoreDamaged:
            return None  # reported for that ref

    def _note_divergence(self) -> Iterator[Finding]:
        """Yield a note on each ref that has diverged: both sides are kept, and nothing is wrong."""
        heads = RemoteHeads(self._store)
        for target in self._targets:
            tip = target.tip
            if tip is None or target.kind in {"kept", "nodes"}:
                continue
            is_workflow = target.kind == "workflow"
            find = heads.find_workflow if is_workflow else heads.find_thread
            for remote, there in find(target.name, tip):
                other_way = _OTHER_WAY.format(thread=target.name, here=tip, there=there)
                yield Finding(
                    f"{target.ref} has diverged: it is at {tip}, and remote {remote} had it at "
                    f"{there}: neither goes on from the other",
                    f"`uwf fetch {remote}` says what to do" if is_workflow else other_way,
                    target.ref,
                    tip,
                )
