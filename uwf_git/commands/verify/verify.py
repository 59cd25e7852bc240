"""`uwf verify`: check every ref, refs against one another, and the files that git reads.

Nothing is written; each commit and node is checked once in a run. Bare repositories have no
reflogs, so a history that was rewritten here shows only against what a remote last had.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain, islice, pairwise
from typing import Literal, NamedTuple

from uwf_git.commands.family import STRANGER_HINT, Strangers
from uwf_git.commands.split import name_work
from uwf_git.commands.verify.history import Finding, check_files, find_hub_gap, find_other_story
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.commands.verify.puts import check_put_ref
from uwf_git.commands.verify.thread import Claim, RefKind, ThreadChecks
from uwf_git.commands.worktree.chain import Made, read_log_of
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.event_rules import RULES
from uwf_git.model.names import NotAThreadId, Oid, ThreadId, is_thread_id
from uwf_git.model.text import quote_path
from uwf_git.model.thread import ENDED
from uwf_git.store.lookup import CAS, NODES_REF
from uwf_git.store.objects.commit import is_descendant
from uwf_git.store.refs import BadRef, list_refs
from uwf_git.store.remotes.remotes import RemoteHeads
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head
from uwf_git.store.threads.history import (
    KEPT,
    Snapshot,
    list_preserved,
    list_preserved_threads,
    read_snapshot,
    walk_history,
)
from uwf_git.store.threads.local_files import has_files
from uwf_git.store.threads.naming import resolve_thread
from uwf_git.store.workflows import WORKFLOWS

# Find the refs to verify, and their order.
#
# Workflows come first, so that a damaged node is reported for its workflow; then threads from the
# oldest to the newest, so that what a fork shares is reported for its origin. Each file of refs
# is read once.

TargetKind = Literal["workflow", "nodes", "active", "archive", "kept"]


class Target(NamedTuple):
    kind: TargetKind
    ref: str
    name: str

    tip: Oid | None
    """The commit; None if the ref holds no object id."""


def find_targets(store: Store, texts: list[str]) -> list[Target]:
    """Return all refs, or those that *texts* name: a full ref, a workflow, or a thread's refs."""
    every = list(_all(store))
    if not texts:
        return every
    return list(dict.fromkeys(each for text in texts for each in _meant(store, text, every)))


def _all(store: Store) -> Iterator[Target]:
    for name, tip in _listed(store, WORKFLOWS):
        yield Target("workflow", WORKFLOWS + name, name, tip)
    for name, tip in _listed(store, CAS):
        if CAS + name == NODES_REF:
            yield Target("nodes", NODES_REF, NODES_REF, tip)
    threads = [
        Target(kind, prefix + name, name, tip)
        for kind, prefix in _THREADS
        for name, tip in _listed(store, prefix)
        if is_thread_id(name)
    ]
    # Of two refs of a thread the archived one counts, so it comes first.
    yield from sorted(threads, key=lambda target: (target.name, target.kind != "archive"))
    for thread in list_preserved_threads(store):
        for commit in list_preserved(store, thread):
            yield Target("kept", f"{KEPT}{thread}/{commit}", thread, commit)


_THREADS: tuple[tuple[TargetKind, str], ...] = (("archive", ARCHIVE), ("active", ACTIVE))


def _listed(store: Store, prefix: str) -> Iterator[tuple[str, Oid | None]]:
    listed = list_refs(store.path, prefix)
    yield from listed.items()
    # A ref without an object id is not listed.
    for name in store.refs.names(prefix):
        if name not in listed and "/" not in name:
            try:
                yield name, store.refs.find(prefix + name)
            except StoreDamaged:
                yield name, None


def _meant(store: Store, text: str, every: list[Target]) -> list[Target]:
    name = unicodedata.normalize("NFC", text)
    refs = {name, WORKFLOWS + name}
    found = [each for each in every if each.ref in refs]
    if not found and not name.startswith("refs/"):
        with suppress(NotAThreadId):
            thread = resolve_thread(store, text)
            found = [each for each in every if each.name == thread]
    if not found:
        shown = text[:100] if text and text.isprintable() else repr(text[:100])
        raise Refused(
            f"there is no thread, workflow or ref {shown} that could be verified",
            code="no-such-ref",
            hint="`uwf thread list --all` and `uwf workflow list` show them; without a name all "
            "are verified",
            ref=text[:100],
        )
    return found


# Check the commits of a project's files that the steps of threads name, where the project is.


def check_ranges(
    store: Store, targets: Iterable[Target], *, cwd: str
) -> Iterator[tuple[bool, Finding]]:
    """Yield what is wrong with files of threads and joined branches, and if it is a problem.

    The project around *cwd* counts where a thread's directory is gone.
    """
    targets, seen = list(targets), set[Oid]()
    for target in targets:
        if target.kind not in {"active", "archive"} or not target.tip:
            continue
        ends: list[tuple[Snapshot, Oid]] = []
        names: dict[ThreadId, None] = {}
        # Where the history breaks off is told by ``verify``.
        with suppress(StoreDamaged):
            for step, before in pairwise(walk_history(store, target.tip, through_forks=True)):
                names[step.record.thread] = None
                # What a fork shares is checked once.
                if step.commit.oid in seen:
                    break
                seen.add(step.commit.oid)
                if RULES[step.record.event].may_change_files:
                    ends.append((step, before.turn_start))
                for tip in step.commit.parents[1:]:
                    name = read_snapshot(store, tip).record.thread
                    # The files of one that was removed are where the fork is that keeps them.
                    place = target.name if find_head(store, name) is None else name
                    targets.append(target._replace(name=place, tip=tip))
        # A step that should name files may be the only one.
        if any(step.record.files for step, _ in ends) or has_files(store, ThreadId(target.name)):
            log = read_log_of(store, ThreadId(target.name), list(names), cwd=cwd)
            yield from _check_ends(target, ends, {made.commit: made for made in log})


def _check_ends(
    target: Target, ends: list[tuple[Snapshot, Oid]], log: Mapping[str, Made]
) -> Iterator[tuple[bool, Finding]]:
    if not log:
        if not any(step.record.files for step, _ in ends):
            return
        told = f"the files of thread {target.name} are not here, and were not checked"
        hint = "fetch them into the project: docs/files.md"
        yield False, Finding(told, hint, target.ref)
        return
    changed = {
        (made.thread, made.after): made.commit
        for made in log.values()
        if made.title.startswith("after ") and ", step " in made.title
    }
    for step, turn in ends:
        files, name, at = step.record.files, step.record.thread, None
        if files is None and (at := changed.get((name, turn))) is not None:
            told = f"names no files, though its turn changed some: {at}"
            hint = f"its recording was cut off, or the step is forged: `git show {at}` tells more"
        elif files and (problem := _find_problem(files, (name, turn), log)) is not None:
            told = f"names the files {files} of {name_work(name)}, {problem}"
            hint = "another copy of the project may have them: `git fetch` that ref from there"
        else:
            continue
        place = (target.ref, step.commit.oid)
        yield at is None, Finding(f"a {step.record.event} {told}", hint, *place)


def _find_problem(files: str, turn: tuple[str, str], log: Mapping[str, Made]) -> str | None:
    before, _, after = files.partition("..")
    if before not in log or after not in log:
        return "which are not both there"
    at: Made | None = log[after]
    while at is not None and (at.thread, at.after) == turn:
        at = log.get(at.parent)
        if at is not None and at.commit == before:
            return None
    return "which are in another order" if at is None else f"but {at.commit} is of another turn"


MOST_TOLD = 10_000
_NOWHERE = "0" * 40


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
    found = run.check()
    if not texts:
        found = chain(found, check_files(store, {each.ref for each in targets}, run.notes))
    troubles = tuple(islice(found, MOST_TOLD))
    if not texts:
        run.notes += filter(None, (find_hub_gap(store.path), find_other_story(store)))
    return run.conclude(troubles)


class _Run:
    def __init__(self, store: Store, targets: list[Target]) -> None:
        self._store, self._targets = store, targets
        self._git = f"git -C {quote_path(store.path)}"
        self._trees = TreeChecks(store)
        self._threads = ThreadChecks(self._trees, judge=self._judge_joined)
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
            tip = target.tip
            if tip is None:
                error = BadRef(target.ref)
                yield Finding(error.message, error.hint or "", target.ref)
            elif target.kind in {"workflow", "nodes"}:
                yield from check_put_ref(self._trees, target.ref, tip)
            else:
                yield from self._check_thread(target, tip)
        yield from self._threads.finish()
        self.notes += self._note_divergence()

    def _judge_joined(self, joined: Claim) -> str | None:
        """Tell whether the branch has another end here; it may go on, as one that is given up."""
        at = self._find(ARCHIVE + joined.thread)
        if at in {None, joined.tip} or is_descendant(self._trees.recent, at, joined.tip):
            return None
        return f"the branch is at {at} here"

    def _check_thread(self, target: Target, tip: Oid) -> Iterator[Finding]:
        place: RefKind = target.kind if target.kind in {"active", "archive"} else "kept"
        archived = self._find(ARCHIVE + target.name) if place == "active" else None
        if archived is not None:
            yield from self._compare_with_archive(target, tip, archived)
            # The status is checked on the archived ref.
            place = "kept"
        claim = Claim(target.ref, ThreadId(target.name), tip, place)
        move = partial(self._name_move, target.ref, target.name, tip)
        yield from self._threads.check(claim._replace(move=move))
        stranger = None if place == "kept" else self._strangers.find_below(tip)
        if stranger is not None:
            yield Finding(stranger, STRANGER_HINT, target.ref, tip)

    def _compare_with_archive(self, target: Target, tip: Oid, archived: Oid) -> Iterator[Finding]:
        if not is_descendant(self._store.objects, archived, tip):
            places = f"{target.ref} is at {tip}, and {ARCHIVE}{target.name} at {archived}"
            told = f"thread {target.name} went on after it was archived: {places}"
            hint = (
                f"both are kept; `{self._git} log {tip} ^{archived}` shows what is only here; `uwf "
                f"thread fork {target.name} --at {tip}` makes that a thread of its own, and this "
                f"one goes on as it is there once `{self._git} update-ref -d {target.ref} {tip}` "
                "is done"
            )
            with suppress(StoreDamaged):
                status = read_snapshot(self._store, archived).record.status
                if status not in ENDED and is_descendant(self._store.objects, tip, archived):
                    hint = self._name_move(ARCHIVE + target.name, target.name, archived)
            yield Finding(told, hint, target.ref, tip)
        # It may have been archived since the refs were listed.
        elif self._find(target.ref) is not None:
            told = f"thread {target.name} is archived, and still has its active ref"
            hint = "it does no harm, and `uwf gc` sweeps it away"
            self.notes.append(Finding(told, hint, target.ref, tip))

    def _name_move(self, ref: str, thread: str, tip: Oid) -> str:
        """Return how the thread gets from *ref* to its other folder; no command loses a commit."""
        right = (ACTIVE if ref.startswith(ARCHIVE) else ARCHIVE) + thread
        there, leave = self._find(right), f"`{self._git} update-ref -d {ref} {tip}`"
        if there is not None and is_descendant(self._store.objects, there, tip):
            return f"{leave} is enough: {right} goes on from there"
        if there is None or is_descendant(self._store.objects, tip, there):
            return f"`{self._git} update-ref {right} {tip} {there or _NOWHERE}` and {leave} move it"
        return f"do first what is said of {right}, then verify again"

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
            find = heads.find_workflow if target.kind == "workflow" else heads.find_thread
            for remote, there in find(target.name, tip):
                shown = f"`{self._git} log {tip} ^{there}` shows what is only here"
                hint = f"both are kept; {shown}; `uwf fetch {remote}` says what to do"
                places = f"it is at {tip}, and remote {remote} had it at {there}"
                told = f"{target.ref} has diverged: {places}: neither goes on from the other"
                yield Finding(told, hint, target.ref, tip)
