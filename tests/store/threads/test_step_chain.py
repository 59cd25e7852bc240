"""Step chains; test_chain_cycles.py tests chains that lead back into themselves."""

import tracemalloc
from collections.abc import Callable
from random import Random

import pytest
from refusing import refuses
from store.story import Story

from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads import history
from uwf_git.store.threads.history import StepChain
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


def story_of(store: Store, clock: Callable[[], int], steps: int, **fields: object) -> Story:
    story = Story(store, clock)
    for number in range(steps):
        story.step(text=str(number), meta={"n": number, **fields})
    return story


def watch_reads(monkeypatch: pytest.MonkeyPatch) -> list[NodeHash]:
    names: list[NodeHash] = []
    get_node = Snapshot.get_node

    def read(snapshot: Snapshot, name: NodeHash) -> Node:
        names.append(name)
        return get_node(snapshot, name)

    monkeypatch.setattr(Snapshot, "get_node", read)
    return names


def test_newest_is_read_without_the_rest(
    store: Store, clock: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = StepChain(story_of(store, clock, 7).snapshot)
    read = watch_reads(monkeypatch)

    assert (len(chain), read) == (7, [])
    assert chain.get(6).payload["meta"] == {"n": 6}
    assert len(read) == 1
    assert chain.get(4).payload["meta"] == {"n": 4}
    assert chain.get(5).payload["meta"] == {"n": 5}
    assert len(read) == 3


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


def test_chain_stays_at_its_commit(store: Store, clock: Callable[[], int]) -> None:
    story = story_of(store, clock, 2)
    chain = StepChain(story.snapshot)
    story.step(text="later")

    assert (len(chain), chain.get(1).payload["meta"]) == (2, {"n": 1})


def test_chain_that_is_shorter_than_it_says_is_damaged(
    store: Store, clock: Callable[[], int]
) -> None:
    snapshot = story_of(store, clock, 2).snapshot
    chain = StepChain(snapshot._replace(record=snapshot.record._replace(depth=3)))

    assert chain.get(2).payload["meta"] == {"n": 1}
    with refuses("damaged-commit", match="is not a step"):
        chain.get(0)


def test_missing_step_is_named_when_it_is_read(store: Store, clock: Callable[[], int]) -> None:
    snapshot = story_of(store, clock, 2).snapshot
    chain = StepChain(snapshot._replace(record=snapshot.record._replace(node=NodeHash("0" * 13))))

    for _ in range(2):
        with pytest.raises(MissingNode):
            chain.get(1)


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
