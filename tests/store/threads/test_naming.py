"""Short ids, and `@`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.flows import split_checks
from commands.world import make_world
from hypothesis import given
from hypothesis import strategies as st
from store.story import Story

from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, NoSuchThread, resolve_thread
from uwf_git.store.threads.naming import ShortIds, describe_threads

SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ENDS = st.text(SYMBOLS[:3], min_size=16, max_size=16)


@given(
    ids=st.sets(
        st.tuples(st.sampled_from(["01J7K9M2XN", "01J7K9M2XP", "7ZZZZZZZZZ"]), ENDS).map("".join),
        min_size=1,
    )
)
def test_short_id_is_the_shortest_that_names_one_thread(ids: set[str]) -> None:
    short = ShortIds(ids)

    for each in ids:
        found = short.shorten(each)
        assert [other for other in ids if other.startswith(found)] == [each]
        assert len(found) >= 10
        assert len(found) == 10 or any(
            other.startswith(found[:-1]) for other in ids if other != each
        )


A, B, C = (ThreadId(f"01J7K9M2X{end}PQR5VWBCDF8G3H4T") for end in "ABC")


@pytest.fixture
def three(store: Store, clock: Callable[[], int]) -> Store:
    """Return a store with two active threads, and one that has ended between them."""
    Story(store, clock, A)
    Story(store, clock, B).end()
    Story(store, clock, C)
    return store


def test_at_is_the_newest_be_it_active_or_not(three: Store) -> None:
    names = ("@", "@1", "@2", "@3")

    assert [resolve_thread(three, name) for name in names] == [C, C, B, A]


def test_at_is_no_branch_where_its_thread_is(
    tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]
) -> None:
    split = split_checks(make_world(tmp_path, clock, thread_ids))
    assert max([split.thread, *split.children]) != split.thread

    assert resolve_thread(split.world.store, "@") == split.thread


@pytest.mark.parametrize("text", ["@4", "@0", "@x", "@ 1", "@-1"])
def test_at_that_names_nothing_is_refused(text: str, three: Store) -> None:
    with pytest.raises(NoSuchThread, match=f"there is no thread {text}"):
        resolve_thread(three, text)


def test_one_that_cannot_be_read_has_its_id(three: Store) -> None:
    three.refs.create(ACTIVE + "01J7K9M2XDPQR5VWBCDF8G3H4T", Oid("1" * 40))

    assert "01J7K9M2XD" in describe_threads(three, [ThreadId("01J7K9M2XDPQR5VWBCDF8G3H4T")])
    assert resolve_thread(three, "@2") == C


def test_one_that_is_gone_has_its_id(three: Store) -> None:
    gone = ThreadId("01J7K9M2XDPQR5VWBCDF8G3H4T")

    assert describe_threads(three, [gone]) == ["01J7K9M2XD"]
