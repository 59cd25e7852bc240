from collections.abc import Callable

import pytest
from fresh_store import fresh_store
from store.story import THREAD, Story

from uwf_git.commands.receive.receive import Push, find_bad_name
from uwf_git.commands.receive.ref_update import RefUpdate
from uwf_git.store.oid import Oid

A = Oid("a" * 40)


@pytest.fixture
def push(clock: Callable[[], int]) -> Callable[..., list[str | None]]:
    """List the problems of names that are pushed together, beside a thread and `demo`."""
    store = fresh_store()
    tip = Story(store, clock).head.commit
    store.refs.create("refs/workflows/demo", tip)

    def check(*names: str, new: Oid | None = A) -> list[str | None]:
        updates = {name: RefUpdate(name, None, new) for name in names}
        found = [find_bad_name(Push(store, updates), update) for update in updates.values()]
        return [refusal and refusal.message for refusal in found]

    return check


def test_good_name_has_nothing_wrong(push: Callable[..., list[str | None]]) -> None:
    for name in [
        f"refs/threads/{THREAD}",
        "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4V",
        f"refs/archive/{THREAD}",
        "refs/workflows/demo",
        "refs/workflows/ümläut",
        "refs/cas/nodes",
    ]:
        assert push(name) == [None]
        assert push(name, new=None) == [None]


def test_bad_name_is_refused_for_every_kind_of_change(
    push: Callable[..., list[str | None]],
) -> None:
    for name, problem in [
        ("refs/threads/x", "'x' is not a thread id"),
        ("refs/threads/", "'' is not a thread id"),
        (f"refs/threads/{THREAD}/x", "is not a thread id"),
        (f"refs/archive/{THREAD.lower()}", "is not a thread id"),
        ("refs/workflows/a b", "is not a workflow name: ' ' (U+0020)"),
        ("refs/workflows/.a", "is not a workflow name"),
        ("refs/workflows/a.lock", "is not a workflow name"),
        ("refs/workflows/\udcff", "is not a workflow name"),
        (f"refs/workflows/{'x' * 101}", "is not a workflow name"),
        ("refs/workflows/8FWKR3TN5V1QA", "it could be a node hash"),
        ("refs/workflows/Demo", "differs from the workflow demo in case only"),
        ("refs/cas", "uwf has no ref of that name"),
        ("refs/threads", "uwf has no ref of that name"),
        (f"refs/Threads/{THREAD}", "uwf has no ref of that name"),
        ("refs/uwf/kept/x", "belong to one store alone"),
        ("refs/uwf/remotes/origin/threads/x", "belong to one store alone"),
    ]:
        for new in (A, None):
            (told,) = push(name, new=new)
            assert told is not None
            assert problem in told


def test_of_two_new_names_that_differ_in_case_neither_is_good(
    push: Callable[..., list[str | None]],
) -> None:
    assert push("refs/workflows/a", "refs/workflows/A", "refs/workflows/b") == [
        "it differs from the workflow A in case only",
        "it differs from the workflow a in case only",
        None,
    ]
