"""Commits for git to judge: a chain of them in a store of its own, without nodes."""

import io
import os
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from itertools import count
from pathlib import Path

import seal
from cli.program import Ran
from commands.world import make_store
from dulwich.objects import Tree
from interop.forged_branches import BRANCHES
from interop.forged_joins import JOINS
from interop.forger import Forger
from interop.honest_flows import Told, refs_of
from seal import START_MS
from store.story import COMMITTER

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.session import Session
from uwf_git.cli.uwf import UWF
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.commit import CommitDraft, CommitView, Signing, read_commit, write_commit
from uwf_git.store.store import Store

REF = "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4T"


def chain_commits(place: Path, commits: Iterable[tuple[bytes, bytes]]) -> Store:
    """Make a store below *place* in which REF ends a chain of *commits*: author and message."""
    store = make_store(place / "chain.git")
    parents: tuple[CommitView, ...] = ()
    for author, message in commits:
        draft = CommitDraft(Tree(), parents, message, ())
        oid = write_commit(store.objects, draft, Signing(author, COMMITTER, seal.START_MS))
        parents = (read_commit(store.objects, oid),)
    assert store.refs.create(REF, parents[0].oid)
    return store


# `uwf` on any store, in this process.


def uwf(store: str, *words: str) -> Ran:
    """Run it on the store at a path."""
    clock = count(START_MS, 1000).__next__
    session = Session(
        os.getcwd(), dict(os.environ), clock, lambda: ThreadId("7" + "Z" * 25), repo=store
    )
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = run(UWF, words, prog="uwf", environ=session.environ, session=session)
    return Ran(status, out.getvalue(), err.getvalue())


# All forgeries: what each does to a thread that splits and joins, and to which workflows.
#
# A row is tried on all its workflows at night; plain pytest tries some on the first of them. What
# expressions say is recorded in StartNodes alone, so other items of a map, or another prompt of a
# workflow, are another history that may be: only a signature tells.

ROWS = {**JOINS, **BRANCHES}


def forge(name: str, told: Told, place: Path) -> str:
    """Forge a copy of a store at *place*, and return its path."""
    forger = Forger(told.copy(place))
    store = forger.told.world.store
    before = refs_of(store)
    changes = ROWS[name][1](forger)
    if changes:
        forger.rewrite(changes)
    assert refs_of(store) != before, "nothing was forged"
    return store.path
