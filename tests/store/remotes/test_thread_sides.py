import pytest
from fresh_store import fresh_store

from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.remotes.remotes import Remote, Sides, read_sides

A, B = Oid("a" * 40), Oid("b" * 40)
THREAD = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")


def test_four_refs_tell_where_a_thread_is() -> None:
    store = fresh_store()
    assert read_sides(store, Remote("o", "x"), THREAD) == Sides(None, None, None, None)
    store.refs.create(f"refs/threads/{THREAD}", A)
    store.refs.create(f"refs/uwf/remotes/o/archive/{THREAD}", B)
    assert read_sides(store, Remote("o", "x"), THREAD) == Sides(A, None, None, B)


@pytest.mark.parametrize(
    ("sides", "is_in_sync"),
    [
        (Sides(None, None, None, None), True),
        (Sides(A, None, None, None), True),
        (Sides(A, None, A, None), True),
        (Sides(A, None, B, None), False),
        (Sides(None, None, A, None), False),
        (Sides(A, None, A, A), False),
        (Sides(None, A, None, A), True),
        (Sides(None, A, B, None), True),
        (Sides(None, A, None, B), False),
        (Sides(A, A, None, A), False),
    ],
)
def test_what_is_the_same_needs_no_look(sides: Sides, is_in_sync: bool) -> None:  # noqa: FBT001 (a column)
    assert sides.is_in_sync == is_in_sync
