from pathlib import Path

from uwf_git.model.names import Oid
from uwf_git.store.remotes.remotes import (
    Remote,
    SharedRefs,
    forget_tracking,
    list_unreadable,
    read_shared,
    track,
    update_tracking,
)
from uwf_git.store.store import Store

A, B, C = (Oid(digit * 40) for digit in "abc")
ONE, TWO = "01J7K9M2XNPQR5VWBCDF8G3H4T", "01J7K9M2XNPQR5VWBCDF8G3H4V"
REMOTE = Remote("origin", "x")


def test_tracking_refs_follow_the_remote(store: Store) -> None:
    first = SharedRefs({ONE: A, TWO: A}, {}, {"demo": C})
    update_tracking(store, REMOTE, seen=SharedRefs({}, {}, {}), now=first)
    assert read_shared(store, REMOTE) == first
    then = SharedRefs({TWO: B}, {ONE: B}, {})
    update_tracking(store, REMOTE, seen=first, now=then)
    assert read_shared(store, REMOTE) == then
    # Moved as one: a git that lists refs finds it in one of both places.
    assert f"{REMOTE.tracking}archive/{ONE}" in Path(store.path, "packed-refs").read_text()
    assert read_shared(store) == SharedRefs({}, {}, {})


def test_of_two_fetches_the_later_answer_stays(store: Store) -> None:
    seen = SharedRefs({}, {}, {})
    update_tracking(store, REMOTE, seen=seen, now=SharedRefs({ONE: B}, {}, {}))
    update_tracking(store, REMOTE, seen=seen, now=SharedRefs({ONE: A}, {}, {}))
    track(store, REMOTE, {f"threads/{ONE}": (A, C)})
    track(store, REMOTE, {f"threads/{ONE}": (A, None)})
    assert read_shared(store, REMOTE).threads == {ONE: B}


def test_forgetting_a_remote_leaves_the_others(store: Store) -> None:
    for name in ("origin", "origin2"):
        track(store, Remote(name, "x"), {f"threads/{ONE}": (None, A)})
        track(store, Remote(name, "x"), {"workflows/demo": (None, A)})
    forget_tracking(store, REMOTE)
    assert list(read_shared(store, REMOTE).rows()) == []
    assert len(list(read_shared(store, Remote("origin2", "x")).rows())) == 2


def test_unreadable_ref_is_reported_if_it_is_ours(store: Store) -> None:
    for name in ONE, "main":
        assert store.refs.create(f"refs/threads/{name}", A)
        Path(store.path, "refs", "threads", name).write_text("")
    assert list_unreadable(store) == [f"refs/threads/{ONE}"]
