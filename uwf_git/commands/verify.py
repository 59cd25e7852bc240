"""`uwf verify`: is everything in the store what it says, and all of it there.

Owns: which checks a ref gets, and what is told of refs beside one another: an archived thread's
active ref, a remote that went another way.
Knows nothing of: how a history is checked.
Always true: nothing is written; each commit and each node is looked at once in a run, whichever
refs have it. There are no reflogs in bare repositories: that a history was rewritten here is only
told by what a remote last had.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from uwf_git.commands.check_put_nodes import check_put_nodes_in
from uwf_git.commands.check_thread import Claim, Place, ThreadChecks
from uwf_git.commands.check_tree import TreeChecks
from uwf_git.commands.check_workflow import check_workflow_in
from uwf_git.commands.trouble import Trouble
from uwf_git.commands.verify_refs import Target, find_targets
from uwf_git.errors import StoreDamaged
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.descent import goes_on_from, has_object
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.ref_listing import list_refs
from uwf_git.store.refs import BadRef, Oid
from uwf_git.store.registry import WORKFLOWS
from uwf_git.store.remotes import list_remotes
from uwf_git.store.store import Store

MOST_TOLD = 10_000
"""How many troubles are told; a store with more is damaged altogether."""

_OTHER_WAY = (
    "both are kept; `git log {here} ^{there}` shows what is only here; "
    "`uwf thread fork {thread} --at {here}` makes that a thread of its own, and this one goes on "
    "as it is there"
)


class Checked(NamedTuple):
    """How much was looked at, each thing once."""

    threads: int
    workflows: int
    commits: int
    nodes: int


class Verified(NamedTuple):
    """What came of a check."""

    checked: Checked
    troubles: tuple[Trouble, ...]
    notes: tuple[Trouble, ...]
    """What is not as it should be, and harms nobody."""

    targets: tuple[Target, ...]
    """The refs that were looked at."""


def verify(store: Store, texts: list[str]) -> Verified:
    """Check the refs that *texts* mean (see ``find_targets``), or the whole store.

    Raises:
        NoSuchRef, NoSuchThread, AmbiguousThread: one means none, or several.
    """
    targets = find_targets(store, texts)
    run = _Run(store, targets)
    troubles = tuple(islice(run.check(), MOST_TOLD))
    return Verified(run.checked(), troubles, tuple(run.notes), tuple(targets))


class _Run:
    """One run over several refs."""

    def __init__(self, store: Store, targets: list[Target]) -> None:
        self._store, self._targets = store, targets
        self._trees = TreeChecks(store)
        self._threads = ThreadChecks(self._trees)
        self.notes: list[Trouble] = []

    def checked(self) -> Checked:
        threads = {each.name for each in self._targets if each.kind in {"active", "archive"}}
        workflows = sum(each.kind == "workflow" for each in self._targets)
        return Checked(len(threads), workflows, self._trees.commits, self._trees.nodes.count)

    def check(self) -> Iterator[Trouble]:
        for target in self._targets:
            yield from self._check(target)
        yield from self._threads.finish()
        yield from self._check_remotes()

    def _check(self, target: Target) -> Iterator[Trouble]:
        tip = target.tip
        if tip is None:
            error = BadRef(target.ref)
            yield Trouble(error.message, error.hint or "", target.ref)
        elif target.kind == "workflow":
            yield from check_workflow_in(self._trees, target.name, tip)
        elif target.kind == "nodes":
            yield from check_put_nodes_in(self._trees, tip)
        else:
            yield from self._check_thread(target, tip)

    def _check_thread(self, target: Target, tip: Oid) -> Iterator[Trouble]:
        place: Place = target.kind if target.kind in {"active", "archive"} else "kept"
        archived = self._find(ARCHIVE + target.name) if place == "active" else None
        if archived is not None:
            yield from self._compare_with_archive(target, tip, archived)
            # Whether it has ended is asked of the archived one.
            place = "kept"
        yield from self._threads.check(Claim(target.ref, ThreadId(target.name), tip, place))

    def _compare_with_archive(self, target: Target, tip: Oid, archived: Oid) -> Iterator[Trouble]:
        if not goes_on_from(self._store.objects, archived, tip):
            yield Trouble(
                f"thread {target.name} went on after it was archived: {target.ref} is at {tip}, "
                f"and {ARCHIVE}{target.name} at {archived}",
                _OTHER_WAY.format(thread=target.name, here=tip, there=archived),
                target.ref,
                tip,
            )
        # Unless it was archived since the refs were listed.
        elif self._find(target.ref) is not None:
            self.notes.append(
                Trouble(
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
            return None  # told of that ref

    def _check_remotes(self) -> Iterator[Trouble]:
        for remote in list_remotes(self._store.config):
            there = {
                prefix: list_refs(self._store, remote.tracking + prefix.removeprefix("refs/"))
                for prefix in (ARCHIVE, ACTIVE, WORKFLOWS)
            }
            for target in self._targets:
                prefixes = (WORKFLOWS,) if target.kind == "workflow" else (ARCHIVE, ACTIVE)
                found = [there[prefix].get(target.name) for prefix in prefixes]
                seen = next((oid for oid in found if oid is not None), None)
                if target.kind != "kept" and target.tip is not None and seen is not None:
                    yield from self._compare(target, target.tip, seen, remote.name)

    def _compare(self, target: Target, here: Oid, there: Oid, remote: str) -> Iterator[Trouble]:
        objects = self._store.objects
        if goes_on_from(objects, here, there) or goes_on_from(objects, there, here):
            return
        if any(not has_object(objects, oid) for oid in (here, there)):
            return  # lost, which is told of the ref itself; of what a remote had `git fsck` tells
        fetch = f"`uwf fetch {remote}` says what to do"
        other_way = _OTHER_WAY.format(thread=target.name, here=here, there=there)
        yield Trouble(
            f"{target.ref} is at {here}, and remote {remote} had it at {there}: neither goes on "
            "from the other",
            fetch if target.kind == "workflow" else other_way,
            target.ref,
            here,
        )
