"""Identities: whatever roles and people are called, no server refuses the commit."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store.story import signed

from uwf_git.store.git.program import clean_identity
from uwf_git.store.objects.commit import CommitDraft, Signing, write_commit
from uwf_git.store.store import Store, create_store, open_store

Git = Callable[..., str]

# What git refuses as it is; one such commit would make its thread unpushable for ever.
REFUSED = [
    b"dev> <x>",
    b"dev<x> <x>",
    b"dev<x>",
    b"dev\nuwf <x>",
    b"dev\0uwf <x>",
    b"dev <x<y>",
]


def committed(store: Store, author: bytes) -> str:
    """Write a commit by that author, under a ref."""
    signing = Signing(author, signed(0).committer, 0)
    oid = write_commit(store.objects, CommitDraft(Tree(), (), b"subject\n", []), signing)
    store.refs.create(f"refs/threads/{oid}", oid)
    return oid


def hub_of(git: Git, store: Store) -> Path:
    hub = Path(store.path).with_name("hub.git")
    git("init", "--quiet", "--bare", hub, cwd=Path(store.path))
    git("config", "receive.fsckObjects", "true", cwd=hub)
    return hub


@pytest.mark.parametrize("raw", REFUSED, ids=repr)
def test_git_refuses_the_names_that_are_not_cleaned(empty: Store, git: Git, raw: bytes) -> None:
    """dulwich writes all of them without a word, so that nothing but cleaning stands in between."""
    hub = hub_of(git, empty)
    oid = committed(empty, raw)
    with pytest.raises(Exception, match="returned non-zero"):
        git("push", "--quiet", hub, f"refs/threads/{oid}", cwd=Path(empty.path))


# The git fixture keeps nothing between examples.
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.tuples(st.text(), st.text()), min_size=20, max_size=40))
def test_whatever_it_is_called_git_finds_nothing_wrong(
    tmp_path_factory: pytest.TempPathFactory, git: Git, names: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("store")
    create_store(str(path))
    git("config", "uwf.fsync", "false", cwd=path)
    store = open_store(str(path))
    made = [committed(store, clean_identity(name, email)) for name, email in names]
    assert git("fsck", "--strict", "--no-dangling", cwd=path) == ""
    told = git("log", "--no-walk=unsorted", "--format=%an <%ae>", *made, cwd=path)
    expected = [clean_identity(name, email).decode() for name, email in names]
    assert told.splitlines() == list(dict.fromkeys(expected))
