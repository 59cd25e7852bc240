from collections.abc import Callable

import pytest
from store.story import THREAD, Story

from uwf_git.commands.receive_moves import Push
from uwf_git.commands.receive_names import find_bad_name
from uwf_git.commands.ref_update import RefUpdate
from uwf_git.store.refs import Oid
from uwf_git.store.store import memory_store

A = Oid("a" * 40)


@pytest.fixture
def push(clock: Callable[[], int]) -> Callable[..., list[str | None]]:
    """Say what is wrong with names that are pushed together, beside a thread and `demo`."""
    store = memory_store()
    tip = Story(store, clock).head.commit
    store.refs.create("refs/workflows/demo", tip)

    def check(*names: str, new: Oid | None = A) -> list[str | None]:
        updates = {name: RefUpdate(name, None, new) for name in names}
        found = [find_bad_name(Push(store, updates), update) for update in updates.values()]
        return [refusal and refusal.message for refusal in found]

    return check


@pytest.mark.parametrize(
    "name",
    [
        f"refs/threads/{THREAD}",
        "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4V",
        f"refs/archive/{THREAD}",
        "refs/workflows/demo",
        "refs/workflows/ümläut",
        "refs/cas/nodes",
    ],
)
def test_good_name_has_nothing_wrong(name: str, push: Callable[..., list[str | None]]) -> None:
    assert push(name) == [None]
    assert push(name, new=None) == [None]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("refs/threads/x", "'x' is not a thread id"),
        ("refs/threads/", "'' is not a thread id"),
        (f"refs/threads/{THREAD}/x", "is not a thread id"),
        (f"refs/archive/{THREAD.lower()}", "is not a thread id"),
        ("refs/workflows/a b", "is no name for a workflow: ' ' (U+0020)"),
        ("refs/workflows/.a", "is no name for a workflow"),
        ("refs/workflows/a.lock", "is no name for a workflow"),
        ("refs/workflows/\udcff", "is no name for a workflow"),
        (f"refs/workflows/{'x' * 101}", "is no name for a workflow"),
        ("refs/workflows/8FWKR3TN5V1QA", "it reads as a node hash"),
        ("refs/workflows/Demo", "differs from the workflow demo in case only"),
        ("refs/cas", "no ref of uwf has such a name"),
        ("refs/threads", "no ref of uwf has such a name"),
        (f"refs/Threads/{THREAD}", "no ref of uwf has such a name"),
        ("refs/uwf/kept/x", "belongs to one store alone"),
        ("refs/uwf/remotes/origin/threads/x", "belongs to one store alone"),
    ],
)
def test_bad_name_is_told_whatever_is_done_with_it(
    name: str, problem: str, push: Callable[..., list[str | None]]
) -> None:
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
