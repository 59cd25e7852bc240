"""Who signed each step: the signatures below refs, commit by commit.

Owns: the walk, and what is told of each commit. Knows nothing of: how a signature is checked,
which refs are asked for.
Always true: nothing is written. A history that is damaged is told as far as it can be read: what
is wrong with it is for the other checks to say.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from uwf_git.commands.trouble import Trouble
from uwf_git.errors import StoreDamaged
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.commit import CommitView, read_commit, read_raw_commit
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.history import walk_history
from uwf_git.store.kept import KEPT
from uwf_git.store.message import parse_trailers, subject_of
from uwf_git.store.refs import Oid
from uwf_git.store.signature_check import SignatureChecker
from uwf_git.store.signature_verdict import Verdict
from uwf_git.store.store import Store

_FORGED = {"bad", "revoked"}


class SignedCommit(NamedTuple):
    """A commit, and what is to be thought of its signature."""

    ref: str
    commit: Oid
    thread: str | None
    """None for a commit of a workflow or of nodes put by hand."""

    event: str
    depth: int | None
    role: str | None
    said: str
    """The subject of the commit."""

    verdict: Verdict

    @property
    def trouble(self) -> Trouble | None:
        """What is wrong with it, if anything is.

        Only a signature that lies is wrong: that nobody signed, or nobody known, says no more of
        a commit than an unsigned history does, and what has to be signed is not for us to say.
        """
        if self.verdict.status not in _FORGED:
            return None
        return Trouble(
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
    """Give every commit of the refs in *tips* (name and commit) once, each ref's newest first.

    Raises:
        UnfitSetting: git's settings about signatures make no sense, or name what is not there.
        ProgramFailed: the program that could tell could not be started.
    """
    checker = SignatureChecker(store, environ)
    seen: set[Oid] = set()
    for ref, tip in tips:
        walk = _walk_thread if ref.startswith((ACTIVE, ARCHIVE, KEPT)) else _walk_versions
        # Damage is found on the way back: whatever comes before it stands.
        with suppress(StoreDamaged):
            for commit, record in walk(store, tip):
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
                    verdict=checker.check(
                        read_raw_commit(store.objects, commit.oid), time_s=commit.time_s
                    ),
                )


def _walk_thread(store: Store, tip: Oid) -> Iterator[tuple[CommitView, TransitionRecord | None]]:
    for snapshot in walk_history(store, tip):
        yield snapshot.commit, snapshot.record


def _walk_versions(store: Store, tip: Oid) -> Iterator[tuple[CommitView, TransitionRecord | None]]:
    oid: Oid | None = tip
    while oid is not None:
        commit = read_commit(store.objects, oid)
        yield commit, None
        oid = next(iter(commit.parents), None)
