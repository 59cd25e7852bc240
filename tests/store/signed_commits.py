"""Make signed commits, valid and forged ones, and read git's verdict on them."""

import os
import signal
import subprocess
from pathlib import Path

import seal
from dulwich.objects import Tree
from store.signing_keys import Git
from store.story import COMMITTER, put_raw

from uwf_git.model.names import Oid
from uwf_git.store.objects.commit import (
    CommitDraft,
    Signing,
    read_commit,
    read_raw_commit,
    write_commit,
)
from uwf_git.store.signatures import SignatureChecker, Verdict, build_signer
from uwf_git.store.store import Store


def sign_commit(
    store: Store,
    environ: dict[str, str] | None = None,
    *,
    message: bytes = b"a: b\n",
    now_ms: int = seal.START_MS,
) -> Oid:
    """Write a commit without anything in it, signed as the settings of *store* say."""
    sign = build_signer(store, environ or dict(os.environ), committer=COMMITTER)
    signing = Signing(COMMITTER, COMMITTER, now_ms, sign)
    return write_commit(store.objects, CommitDraft(Tree(), (), message, ()), signing)


def put_commit(store: Store, raw: bytes) -> Oid:
    """Put a forged commit."""
    return Oid(put_raw(store, "commit", raw).decode())


def signature_header(store: Store, oid: Oid) -> bytes:
    """Return the header of a commit that holds its signature, whole."""
    raw = read_raw_commit(store.objects, oid)
    return raw[raw.index(b"gpgsig ") : raw.index(b"\n\n")] + b"\n"


def with_header(store: Store, header: bytes, *, message: bytes = b"a: b\n") -> Oid:
    """Put a commit that is not signed, with *header* where its signature would be."""
    unsigned = CommitDraft(Tree(), (), message, ())
    oid = write_commit(store.objects, unsigned, Signing(COMMITTER, COMMITTER, seal.START_MS))
    head, blank, rest = read_raw_commit(store.objects, oid).partition(b"\n\n")
    return put_commit(store, head + b"\n" + header + blank[1:] + rest)


def check(store: Store, oid: Oid, environ: dict[str, str] | None = None) -> Verdict:
    """Check one commit as a process of its own would."""
    checker = SignatureChecker(store, environ or dict(os.environ))
    view = read_commit(store.objects, oid)
    return checker.check(read_raw_commit(store.objects, oid), time_s=view.time_s)


def ask_git(git: Git, store: Store, oid: Oid) -> tuple[str, str, str]:
    """Return git's letter for the signature of a commit, the signer and the key."""
    form = "--format=%G?%x00%GS%x00%GF"
    while True:
        try:
            answer = git("log", "-1", form, oid, cwd=Path(store.path))
        except subprocess.CalledProcessError as failure:
            # git does not expect that ssh-keygen ends before it has read everything.
            if failure.returncode != -signal.SIGPIPE:
                raise
        else:
            letter, signer, key = answer.strip("\n").split("\0")
            return letter, signer, key


def in_letters(verdict: Verdict) -> tuple[str, str, str]:
    """Return a verdict as git would write it."""
    letters = {"good": "G", "bad": "B", "untrusted": "U", "unsigned": "N"}
    return letters.get(verdict.status, verdict.status), verdict.signer or "", verdict.key or ""
