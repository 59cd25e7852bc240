"""Step chains; test_chain_cycles.py tests chains that lead back into themselves."""

import tracemalloc
from collections.abc import Callable
from random import Random

import pytest
from store.story import THREAD, Story, signed

from uwf_git.model.event_folds import Words
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads import history
from uwf_git.store.threads.history import (
    NewCommit,
    StepChain,
    list_preserved,
    list_preserved_threads,
    preserve_commit,
    read_snapshot,
    record_next,
    release,
    walk_history,
)

OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


def test_a_childs_story_ends_at_its_own_start(store: Store, clock: Callable[[], int]) -> None:
    """Its first commit may have a parent: the commit of the thread that it was split from."""
    parent = Story(store, clock)
    parent.step()
    before = parent.snapshot
    record = before.record._replace(event="start", thread=OTHER)
    child = record_next(
        store, before, NewCommit(record, Words("child"), before.get_present()), signed(clock())
    )
    assert read_commit(store.objects, child).parents == (parent.head.commit,)
    assert [each.record.thread for each in walk_history(store, child)] == [OTHER]


def test_kept_commit_is_listed_until_it_is_let_go(
    store: Store, clock: Callable[[], int], git: Callable[..., str]
) -> None:
    story = Story(store, clock)
    lost = story.write_step("writer", "nobody saw this")
    preserve_commit(store, THREAD, lost)
    preserve_commit(store, THREAD, lost)
    git("gc", "--quiet", "--prune=now", cwd=store.path)
    assert list_preserved(store, THREAD) == [lost]
    assert git("cat-file", "-t", lost, cwd=store.path) == "commit\n"

    release(store, THREAD, lost)
    release(store, THREAD, lost)
    assert list_preserved(store, THREAD) == []


def test_threads_for_which_something_is_kept_are_listed(
    store: Store, clock: Callable[[], int], git: Callable[..., str]
) -> None:
    story = Story(store, clock)
    assert list_preserved_threads(store) == []
    preserve_commit(store, THREAD, story.write_step("writer", "nobody saw this"))
    assert list_preserved_threads(store) == [THREAD]
    git("pack-refs", "--all", cwd=store.path)
    assert list_preserved_threads(store) == [THREAD]


def story_of(store: Store, clock: Callable[[], int], steps: int, **fields: object) -> Story:
    story = Story(store, clock)
    for number in range(steps):
        story.step(text=str(number), meta={"n": number, **fields})
    return story


def test_any_order_gives_the_steps_in_their_places(
    store: Store, clock: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = story_of(store, clock, 9).snapshot
    expected = [node for node in snapshot.walk_chain() if "prev" in node.payload][::-1]
    for seed in range(20):
        # Half of the runs remember next to nothing.
        most = history.MOST_BYTES if seed % 2 else 5_000
        with monkeypatch.context() as patched:
            patched.setattr(history, "MOST_BYTES", most)
            chain = StepChain(snapshot)
            places = Random(seed).choices(range(9), k=30)
            assert [chain.get(place) for place in places] == [expected[each] for each in places]


_READ = 16 * 2**20


def test_memory_is_limited(
    store: Store, clock: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 2**20
    monkeypatch.setattr(history, "MOST_BYTES", most)
    story = story_of(store, clock, 120, text="x" * 200_000)
    chain = StepChain(read_snapshot(open_store(store.path), story.head.commit))
    tracemalloc.start()
    try:
        sizes = [len(chain.get(place).payload["meta"]["text"]) for place in range(120)]
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sizes == [200_000] * 120
    # All of them are 24 MB; packs and objects in memory have 8 MB each.
    assert kept < 2 * most + _READ
    assert peak < 4 * most + _READ


# The threads around a branch.
