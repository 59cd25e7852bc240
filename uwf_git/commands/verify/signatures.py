"""Check the signatures of the commits below refs. A damaged history is read as far as possible."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.commands.split.commits import is_derived
from uwf_git.commands.verify.finding import Finding
from uwf_git.errors import StoreDamaged, UwfError
from uwf_git.model.thread import TransitionRecord
from uwf_git.store.objects.commit import CommitView, read_commit, read_raw_commit
from uwf_git.store.objects.message import parse_trailers, subject_of
from uwf_git.store.oid import Oid
from uwf_git.store.signatures.check import SignatureChecker
from uwf_git.store.signatures.verdict import Verdict
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import KEPT, walk_history
from uwf_git.store.threads.snapshot import Snapshot

_FORGED = {"bad", "revoked"}


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
        if self.verdict.status not in _FORGED:
            return None
        return Finding(
            f"commit {self.commit} has a signature that is {self.verdict.status}: "
            f"{self.verdict.problem}",
            hint=f"see it with `git verify-commit -v {self.commit}`; another copy of this store "
            "may have what was signed: `git fetch`",
            ref=self.ref,
            commit=self.commit,
        )


def verify_signatures(
    store: Store, environ: Mapping[str, str], tips: Iterable[tuple[str, Oid]]
) -> Iterator[SignedCommit]:
    """List every commit of the refs in *tips* (name and commit) once, each ref's newest first."""
    checker = SignatureChecker(store, environ)
    seen: set[Oid] = set()
    for ref, tip in tips:
        # The walk goes back: the commits before the damage are listed already.
        with suppress(StoreDamaged):
            for commit, record in _walk(store, ref, tip):
                if commit.oid in seen:
                    break
                seen.add(commit.oid)
                yield SignedCommit(
                    ref,
                    commit.oid,
                    thread=None if record is None else record.thread,
                    event=parse_trailers(commit.message).get("Uwf-Event", ""),
                    depth=None if record is None else record.depth,
                    role=None if record is None else record.role,
                    said=subject_of(commit.message),
                    verdict=_check(store, checker, commit, record),
                )


class SignatureReader:
    """Reads the signatures of single commits, for views; ``problem``: why they are not checked."""

    def __init__(self, store: Store, environ: Mapping[str, str]) -> None:
        self._store = store
        self._checker = SignatureChecker(store, environ)
        self.problem: str | None = None

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        if self.problem is None:
            try:
                verdict = _check(self._store, self._checker, snapshot.commit, snapshot.record)
                return {name: each for name, each in verdict._asdict().items() if each is not None}
            except UwfError as error:
                self.problem = error.message
        return {"status": "unchecked"}


def _check(
    store: Store, checker: SignatureChecker, commit: CommitView, record: TransitionRecord | None
) -> Verdict:
    verdict = checker.check(read_raw_commit(store.objects, commit.oid), time_s=commit.time_s)
    follows = record is not None and is_derived(record, commit)
    return Verdict("derived") if follows and verdict.status == "unsigned" else verdict


def _walk(store: Store, ref: str, tip: Oid) -> Iterator[tuple[CommitView, TransitionRecord | None]]:
    if ref.startswith((ACTIVE, ARCHIVE, KEPT)):
        yield from ((each.commit, each.record) for each in walk_history(store, tip))
        return
    oid: Oid | None = tip
    while oid is not None:
        commit = read_commit(store.objects, oid)
        yield commit, None
        oid = next(iter(commit.parents), None)
