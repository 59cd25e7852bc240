"""Commits for git to judge: a chain of them in a store of its own, without nodes."""

from collections.abc import Iterable
from pathlib import Path

import seal
from dulwich.objects import Tree
from store.story import COMMITTER

from uwf_git.store.git.config import set_config
from uwf_git.store.objects.commit import CommitDraft, CommitView, Signing, read_commit, write_commit
from uwf_git.store.store import Store, create_store, open_store

REF = "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4T"


def chain_commits(place: Path, commits: Iterable[tuple[bytes, bytes]]) -> Store:
    """Make a store below *place* in which REF ends a chain of *commits*: author and message."""
    path = str(place / "chain.git")
    create_store(path)
    set_config(f"{path}/config", "uwf.fsync", "false")
    store = open_store(path)
    parents: tuple[CommitView, ...] = ()
    for author, message in commits:
        draft = CommitDraft(Tree(), parents, message, ())
        oid = write_commit(store.objects, draft, Signing(author, COMMITTER, seal.START_MS))
        parents = (read_commit(store.objects, oid),)
    assert store.refs.create(REF, parents[0].oid)
    return store
