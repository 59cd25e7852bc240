"""What is recorded of worktrees: what was written is read, for each thread by itself."""

from pathlib import Path

import pytest

from uwf_git.commands.worktree.record import (
    SplitOrigin,
    Worktree,
    find_split_origin,
    find_worktree,
    forget_worktrees,
    list_parents,
    list_worktrees,
    place_of,
    write_origin,
    write_worktree,
)
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store

PARENT = ThreadId("01J00000000000000000000001")
CHILD = ThreadId("01J00000000000000000000002")
# A path may hold any byte but 0.
ODD = "/a b\n\udcff/é"


def begun(store: Store) -> Worktree:
    path = place_of(store, CHILD) or ""
    return Worktree(CHILD, PARENT, ODD, "/repository/.git", "0" * 40, path, f"{path}/part")


@pytest.fixture(name="store")
def at_home(store: Store, tmp_path: Path) -> Store:
    """Return a store whose user has a home directory."""
    return store._replace(trust_file=str(tmp_path / "home" / "trust"))


def test_a_record_is_read_as_it_was_written(store: Store) -> None:
    assert find_worktree(store, PARENT, CHILD) is None
    assert list_worktrees(store, PARENT) == []
    whole = begun(store)._replace(git_dir="/repository/.git/worktrees/x", commit="1" * 40)
    write_worktree(store, begun(store))
    write_worktree(store, whole)

    assert find_worktree(store, PARENT, CHILD) == whole
    assert list_worktrees(store, PARENT) == [whole]
    assert list(list_parents(store)) == [PARENT]


def test_an_origin_is_that_of_one_split(store: Store) -> None:
    origin = SplitOrigin("0.1/1", ODD, "/repository/.git", "part/", "0" * 40)
    write_origin(store, PARENT, origin)

    assert find_split_origin(store, PARENT, "0.1/1") == origin
    assert find_split_origin(store, PARENT, "0.2/1") is None
    assert find_split_origin(store, CHILD, "0.1/1") is None


def test_what_has_a_worktree_is_not_forgotten(store: Store) -> None:
    write_worktree(store, begun(store))
    forget_worktrees(store, PARENT)
    assert list_worktrees(store, PARENT) == [begun(store)]

    write_worktree(store, begun(store)._replace(is_removed=True))
    forget_worktrees(store, PARENT)
    assert list(list_parents(store)) == []
    forget_worktrees(store, PARENT)
