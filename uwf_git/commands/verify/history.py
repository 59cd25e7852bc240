"""Walk a history along first parents, through forks, and collect its commit ids, nothing else."""

import os
import shlex
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from glob import glob
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.commands.split import is_derived
from uwf_git.errors import GIVEN_BACK, Refused, StoreDamaged, UwfError, name_some
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.text import quote_path
from uwf_git.model.thread import TransitionRecord
from uwf_git.store.git.config import find_program
from uwf_git.store.git.hook_files import find_unpinned
from uwf_git.store.git.program import run_program
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitView,
    OldFormat,
    is_descendant,
    parse_trailers,
    read_commit,
    read_raw_commit,
    subject_of,
)
from uwf_git.store.objects.objects import ObjectStore, disk_places, has_object
from uwf_git.store.objects.strict import REBUILT, check_object_files
from uwf_git.store.packing import NO_FETCHES
from uwf_git.store.refs import BadRefFile, check_head, check_loose_refs, check_packed_refs
from uwf_git.store.signatures import SignatureChecker, Verdict
from uwf_git.store.store import Store, accept_config
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head
from uwf_git.store.threads.history import KEPT, Snapshot, parse_thread_message, read_snapshot
from uwf_git.store.trust import require_trusted
from uwf_git.surroundings import without_local_variables

# Findings, and the place in the store where each was made.
#
# Memory of a run: about 0.1 KB for each commit and 0.16 KB for each node, so 100,000 threads of
# five steps take some 250 MB; caches are bounded to some 80 MB.


class Finding(NamedTuple):
    message: str
    """One line, lower case, that says what is wrong with what."""

    hint: str

    ref: str | None = None
    """The ref below which it was found."""

    commit: Oid | None = None
    node: str | None = None
    """The node, or the file below nodes/ that is not a node."""

    path: str | None = None
    """The path in the node's payload; None: the whole node."""


_LOOK = "see it with `git show {commit}`; another copy of this store may have it whole: `uwf fetch`"


class Location(NamedTuple):
    ref: str
    commit: Oid
    nodes: bytes = b""
    """The 20 bytes of the id of its `nodes/`."""

    def finding(
        self,
        message: str,
        *,
        hint: str | None = None,
        node: str | None = None,
        path: str | None = None,
    ) -> Finding:
        """Return a finding at this commit; without *hint*, with that of damage."""
        told = hint or _LOOK.format(commit=self.commit)
        return Finding(message, told, self.ref, self.commit, node, path)


# Check the files of a store as `git fsck` does: HEAD, refs, packed-refs, objects.


def check_files(store: Store, checked: Container[str], notes: list[Finding]) -> Iterator[Finding]:
    """Check what no ref leads to; of the refs in *checked* only their places in packed-refs.

    What could not be checked comes to *notes*.
    """
    for bad in (*check_head(store.path), *check_packed_refs(store.path)):
        yield Finding(f"{bad.name} {bad.problem}", bad.hint)
    for name, value in check_loose_refs(store.path):
        if name in checked:
            continue
        if isinstance(value, BadRefFile):
            yield Finding(f"ref {name} {value.problem}", value.hint, name)
        elif not has_object(store.objects, value):
            yield Finding(f"ref {name} points at {value}, which is missing", GIVEN_BACK, name)
    for place in disk_places(store.objects):
        files = list(check_object_files(os.fspath(place.path)))
        yield from (Finding(f"objects/{each.name} {each.problem}", each.hint) for each in files)
        # Of damage git would say the same again.
        yield from () if files else _check_lookups(store, os.fspath(place.path), notes)


_LOOKUPS = {"commit-graph": "info/commit-graph*", "multi-pack-index": "pack/multi-pack-index*"}
"""What git reads in place of objects, by the command that compares it with them."""


def _check_lookups(store: Store, folder: str, notes: list[Finding]) -> Iterator[Finding]:
    git = find_program("git", store.environ)
    environ = without_local_variables(store.environ) | NO_FETCHES
    # Where a history is cut, git reads no commit-graph.
    unread = {"commit-graph"} if _find_cuts(store) else set()
    for command, pattern in _LOOKUPS.items():
        if git is not None and command not in unread and glob(pattern, root_dir=folder):
            words = [f"--git-dir={store.path}", command, "verify", "--object-dir", folder]
            ran = run_program([git, *words], environ)
            if ran.status == 1:
                yield Finding(f"git's {command} differs from the objects: {ran.last_line}", REBUILT)
            elif ran.status:
                told = ran.last_line or f"git ended with {ran.status}"
                told = f"git's {command} was not compared with the objects: {told}"
                notes.append(Finding(told, f"`{shlex.join(['git', *words])}` compares them"))


def find_hub_gap(git_dir: str) -> Finding | None:
    """Return how pushes may escape the rules of the shared store, if it has hooks, or None."""
    problem = find_unpinned(git_dir)
    if problem is None:
        return None
    return Finding(
        f"some pushes to the shared store {git_dir} may not be checked: {problem}",
        f"its owner mends it: `uwf init --shared {quote_path(os.path.abspath(git_dir))}`",
    )


_OTHER_STORIES = {
    "info/grafts": "`GIT_GRAFT_FILE=/dev/null git log` passes over info/grafts: remove that file, "
    "unless one of you made it",
    "shallow": "`git fetch --unshallow REMOTE` brings the history that a shallow clone leaves out",
    "refs/replace/": "`git --no-replace-objects log` passes over refs/replace: remove what nobody "
    "of you made",
    "objects/": "put git on the PATH, and verify again: git compares them with the objects",
}


def _find_cuts(store: Store) -> list[str]:
    names = ("info/grafts", "shallow")
    return [name for name in names if os.path.exists(os.path.join(store.path, name))]


def find_other_story(store: Store) -> Finding | None:
    """Return what makes git show other commits than uwf reads and checks, or None."""
    found = _find_cuts(store)
    found += [f"refs/replace/{name}" for name in store.refs.names("refs/replace/")]
    for each in _LOOKUPS.values() if find_program("git", store.environ) is None else ():
        found += glob(f"objects/{each}", root_dir=store.path)
    if not found:
        return None
    return Finding(
        f"git may show other commits than are checked here, because of {name_some(found)}",
        "; ".join(
            told
            for place, told in _OTHER_STORIES.items()
            if any(name.startswith(place) for name in found)
        ),
    )


def note_changed_settings(store: Store) -> tuple[Finding, ...]:
    """Return a note on each setting that changed since an agent was started; it is known then."""
    see = f"see what it is: `git -C {quote_path(store.path)} config --get-all"
    return tuple(
        Finding(
            f"the store's setting {name} was changed since an agent was started, not by your uwf",
            f"{see} {shlex.quote(name)}`; it is known from now on",
        )
        for name in accept_config(store)
    )


def note_own_judges(store: Store) -> Iterator[Finding]:
    """Yield a note on each setting of the store itself that says whose signatures are good."""
    for name in ("gpg.ssh.allowedSignersFile", "gpg.ssh.revocationFile", "gpg.minTrustLevel"):
        try:
            require_trusted(store, name, store.path)
        except Refused as error:
            told = f"signatures are judged by the store's own word: {error.message}"
            yield Finding(told, error.hint or "")


_FORK = b"\nUwf-Event: fork\n"
# Of a branch, whose thread begins at a commit of another thread.
_START = b"\nUwf-Event: start\n"


class History(NamedTuple):
    commits: list[Oid]
    """The newest first."""

    behind: Oid | None
    """The trusted commit before the oldest of them, or None."""

    damage: StoreDamaged | None
    """Why the walk stopped before the beginning; None if it did not."""

    forks: set[Oid]
    """The first commits of threads that begin at a commit of another."""

    beginnings: list[ThreadId | None]
    """The thread that the oldest commit of each thread on the way names, newest first."""

    tip: ThreadId | None
    """The thread that the newest commit names; None if its message cannot be read."""


def walk_back(
    objects: ObjectStore,
    tip: Oid,
    trusted: Container[Oid | None],
    is_shared: Callable[[Oid], bool] = lambda _oid: False,
    seen: Container[Oid] = (),
) -> History:
    """Walk back to a *trusted* or *seen* commit, or the start; *is_shared* is for forks."""
    commits: list[Oid] = []
    forks: set[Oid] = set()
    beginnings: list[ThreadId | None] = []
    damage: StoreDamaged | None = None
    first: CommitView | None = None
    view: CommitView | None = None
    oid: Oid | None = tip
    while oid is not None and oid not in trusted and oid not in seen:
        try:
            view = read_commit(objects, oid)
        except StoreDamaged as error:
            damage, oid = error, None
            break
        commits.append(oid)
        first = first or view
        if _FORK in view.message or (_START in view.message and view.parents):
            forks.add(oid)
            beginnings.append(thread_of(view))
        oid = view.parents[0] if view.parents else None
        if oid is not None and commits[-1] in forks and is_shared(oid):
            break
    if view is not None and (not commits or commits[-1] not in forks):
        beginnings.append(thread_of(view))
    tip_thread = None if first is None else thread_of(first)
    return History(commits, oid, damage, forks, beginnings, tip_thread)


def check_end(
    objects: ObjectStore,
    history: History,
    target: tuple[str, Oid],
    known: Oid | None,
    hints: tuple[str, str],
) -> Iterator[Finding]:
    """Check that *history* reaches its start or *known*; *hints*: for a gap, for another."""
    (ref, tip), damage = target, history.damage
    if damage is not None:
        oid = damage.facts.get("commit") or damage.facts.get("object")
        message = f"the history of {ref} breaks off: {damage.message}"
        yield Finding(message, (damage.hint or hints[0]).format(commit=oid or tip), ref, oid or tip)
    elif known is not None and known != history.behind and not is_descendant(objects, tip, known):
        yield Finding(f"{tip} does not descend from {known}, where {ref} was", hints[1], ref, tip)


def find_old_format(objects: ObjectStore, ref: str, tip: Oid) -> Finding | None:
    """Return that *ref* has a format that is not read any more; None if it has not."""
    try:
        parse_trailers(read_commit(objects, tip).message)
    except OldFormat as error:
        told = error.of_commit(tip, ref)
        return Finding(f"the history cannot be checked: {told.message}", told.hint or "", ref, tip)
    except StoreDamaged:
        return None
    return None


def thread_of(view: CommitView) -> ThreadId | None:
    with suppress(BadMessage):
        return parse_thread_message(view.message).thread
    return None


class KnownHeads:
    def __init__(self, objects: ObjectStore, find: Callable[[ThreadId], Oid | None]) -> None:
        self._objects, self.find = objects, find
        self._is_known = cache(self._find)
        self._trusted: set[Oid] = set()

    def trust(self, tip: Oid) -> None:
        """Count the history of *tip* as well: it was checked."""
        self._trusted.update(walk_back(self._objects, tip, (), self.has, self._trusted).commits)

    def has(self, oid: Oid) -> bool:
        return oid in self._trusted or self._is_known(oid)

    def _find(self, oid: Oid) -> bool:
        try:
            thread = thread_of(read_commit(self._objects, oid))
        except StoreDamaged:
            return False
        tip = None if thread is None else self.find(thread)
        return tip is not None and is_descendant(self._objects, tip, oid)


def heads_of_store(store: Store, more: Mapping[ThreadId, Oid] = MappingProxyType({})) -> KnownHeads:
    """Return the sound heads of the threads of *store*, and those of *more* on demand."""

    def find(thread: ThreadId) -> Oid | None:
        if thread in more:
            return more[thread]
        with suppress(StoreDamaged):
            head = find_head(store, thread)
            return None if head is None else head.commit
        return None

    return KnownHeads(store.objects, find)


def heads_of_refs(objects: ObjectStore, refs: Mapping[str, Oid]) -> KnownHeads:
    return KnownHeads(
        objects, lambda thread: refs.get(ARCHIVE + thread) or refs.get(ACTIVE + thread)
    )


def list_beginnings(
    objects: ObjectStore, tips: Iterable[Oid], had: Container[Oid], heads: KnownHeads
) -> set[Oid]:
    found: set[Oid] = set()
    seen: set[Oid] = set()
    for tip in tips:
        history = walk_back(objects, tip, had, heads.has, seen)
        seen.update(history.commits)
        behind = history.behind
        if behind is not None and behind not in had and behind not in seen:
            found.add(behind)
    return found


# Check the signatures of the commits below refs. A damaged history is read as far as possible.


class SignedCommit(NamedTuple):
    ref: str
    commit: Oid
    thread: str | None
    """None: a commit of a workflow, or of nodes put by hand."""

    event: str
    depth: int | None
    role: str | None
    said: str

    verdict: Verdict

    @property
    def finding(self) -> Finding | None:
        """The finding on a bad or revoked signature; whether to sign is the users' policy."""
        if self.verdict.status not in {"bad", "revoked"}:
            return None
        return Finding(
            f"commit {self.commit} has a signature that is {self.verdict.status}: "
            f"{self.verdict.problem}",
            hint=f"see it with `git verify-commit -v {self.commit}`; another copy of this store "
            "may have what was signed: `uwf fetch`",
            ref=self.ref,
            commit=self.commit,
        )


def verify_signatures(
    store: Store, environ: Mapping[str, str], tips: Iterable[tuple[str, Oid]], wrong: Container[Any]
) -> Iterator[SignedCommit]:
    """List every commit behind *tips* (ref and commit) once: first parents, then joined branches.

    Of the commits in *wrong* ``verify`` found that they cannot be: nothing is derived among them.
    """
    checker = SignatureChecker(store, environ)
    seen: set[Oid] = set()
    lines = list(tips)
    for ref, tip in lines:
        oid: Oid | None = tip
        # The walk goes back: the commits before the damage are listed already.
        with suppress(StoreDamaged):
            while oid is not None and oid not in seen:
                seen.add(oid)
                commit, record = _read(store, ref, oid)
                follows = record is not None and is_derived(record, commit) and oid not in wrong
                yield SignedCommit(
                    ref,
                    oid,
                    thread=None if record is None else record.thread,
                    event=parse_trailers(commit.message).get("Uwf-Event", ""),
                    depth=None if record is None else record.depth,
                    role=None if record is None else record.role,
                    said=subject_of(commit.message),
                    verdict=_check(store, checker, commit, follows=follows),
                )
                oid = next(iter(commit.parents), None)
                lines += ((ref, joined) for joined in commit.parents[1:])


class SignatureReader:
    """Reads the signatures of single commits, for views; ``problem``: why they are not checked."""

    def __init__(
        self, store: Store, environ: Mapping[str, str], is_sound: Callable[[Snapshot], bool]
    ) -> None:
        self._store, self._is_sound = store, is_sound
        self._checker = SignatureChecker(store, environ)
        self.problem: str | None = None

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        if self.problem is None:
            try:
                follows = is_derived(snapshot.record, snapshot.commit) and self._is_sound(snapshot)
                verdict = _check(self._store, self._checker, snapshot.commit, follows=follows)
                return {name: each for name, each in verdict._asdict().items() if each is not None}
            except UwfError as error:
                self.problem = error.message
        return {"status": "unchecked"}


def _check(store: Store, checks: SignatureChecker, commit: CommitView, *, follows: bool) -> Verdict:
    verdict = checks.check(read_raw_commit(store.objects, commit.oid), time_s=commit.time_s)
    return Verdict("derived") if follows and verdict.status == "unsigned" else verdict


def _read(store: Store, ref: str, oid: Oid) -> tuple[CommitView, TransitionRecord | None]:
    if not ref.startswith((ACTIVE, ARCHIVE, KEPT)):
        return read_commit(store.objects, oid), None
    snapshot = read_snapshot(store, oid)
    return snapshot.commit, snapshot.record
