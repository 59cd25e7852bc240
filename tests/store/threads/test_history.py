"""Step chains; test_chain_cycles.py tests chains that lead back into themselves."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from commands.flow_runs import branches, script
from commands.world import World, make_world
from dulwich.objects import Commit, ObjectID
from refusing import refuses
from store.loose import lose
from store.story import THREAD, Story, signed

from uwf_git.model.builtin import SIGNAL, reference
from uwf_git.model.event_folds import Cause, Words
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.model.thread import Event
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads import history
from uwf_git.store.threads.heads import ACTIVE
from uwf_git.store.threads.history import (
    StepChain,
    list_preserved,
    list_preserved_threads,
    preserve_commit,
    read_root,
    read_trunk,
    release,
    walk_history,
)
from uwf_git.store.threads.record import NewCommit, build_next, read_standing, record_next
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


def test_history_from_the_middle_is_what_was_before(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    story.step()
    middle = story.head.commit
    story.step(text="more")
    assert [each.record.event for each in walk_history(store, middle)] == ["step", "start"]


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


def controlled(
    store: Store,
    tip: Oid,
    action: Event,
    clock: Callable[[], int],
    *,
    workflow: NodeHash | None = None,
) -> Oid:
    """Write a commit that only controls the thread, and move nothing."""
    before = read_snapshot(store, tip)
    payload = {"action": action} | ({} if workflow is None else {"workflow": reference(workflow)})
    signal = build_node(SIGNAL, payload, timestamp=0)
    new = build_next(read_standing(before), action, Cause(node=signal), nodes=(signal,))
    return record_next(store, before, new, signed(clock()))


def test_turn_began_before_whatever_only_controlled_it(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    start = story.head.commit
    step = story.step().commit
    paused = controlled(store, step, "pause", clock)
    patched = controlled(store, paused, "patch", clock)

    for tip, begun in ((start, start), (step, step), (paused, step), (patched, step)):
        assert read_snapshot(store, tip).turn_start == begun


def test_another_workflow_begins_another_turn(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    other = story.snapshot.record.node
    paused = controlled(store, story.head.commit, "pause", clock)
    amended = controlled(store, paused, "amend", clock, workflow=other)
    patched = controlled(store, amended, "patch", clock)

    assert read_snapshot(store, paused).turn_start == story.head.commit
    assert read_snapshot(store, amended).turn_start == amended
    assert read_snapshot(store, patched).turn_start == amended


def test_only_first_parents_are_followed(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    other = Story(store, clock, OTHER)
    before = story.snapshot
    merged = NewCommit(before.record._replace(event="pause"), Words("merged"), before.get_present())
    oid = record_next(store, before, merged, signed(clock()))
    commit = store.objects[ObjectID(oid.encode())]
    assert isinstance(commit, Commit)
    commit.parents = [*commit.parents, ObjectID(other.head.commit.encode())]
    store.objects.add_objects([(commit, None)])
    events = [
        (each.record.event, each.record.thread)
        for each in walk_history(store, Oid(commit.id.decode()))
    ]
    assert events == [("pause", THREAD), ("start", THREAD)]


def test_a_thread_of_thousands_is_not_read_before_it_is_asked_for(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    newest = next(walk_history(store, story.head.commit))
    assert newest.record == read_snapshot(store, story.head.commit).record


def test_broken_history_names_the_commit(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    first = story.head.commit
    story.step()
    lose(store, first)
    walk = walk_history(store, story.head.commit)
    assert next(walk).record.event == "step"
    with refuses("damaged-commit", match=first):
        next(walk)
    assert store.refs.find(ACTIVE + THREAD) == story.head.commit


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


def test_unknown_thread_has_no_preserved_commits(store: Store) -> None:
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


# The threads around a branch.


NESTED = """\
name: nested
root:
  type: parallel
  nodes:
    - {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
    - {type: agent, agentId: three}
"""


@pytest.fixture
def world(tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]) -> World:
    """An empty store, and a caller in a directory beside it."""
    return make_world(tmp_path, clock, thread_ids)


@pytest.fixture
def family(world: World) -> list[Snapshot]:
    """Return a thread that has split, its first branch, and the first one of that."""
    thread = world.begun(NESTED)
    for _ in range(3):
        world.step(thread, script())
    outer = branches(world, thread)[0]
    return [world.snapshot(each) for each in (thread, outer, branches(world, outer)[0])]


def test_a_branch_leads_to_its_thread_and_to_the_outermost_one(
    world: World, family: list[Snapshot]
) -> None:
    root, outer, inner = family

    assert [read_trunk(world.store, each) for each in family] == [None, root, outer]
    assert [read_root(world.store, each) for each in family] == [root] * 3
    assert read_root(world.store, root) is root
    assert inner.get_trunk() == outer.record.thread


def test_what_is_not_here_is_not_around_it(world: World, family: list[Snapshot]) -> None:
    root, outer, inner = family
    thread = root.record.thread
    world.store.refs.delete(f"refs/threads/{thread}", seen=root.commit.oid)

    assert read_trunk(world.store, outer) is None
    assert read_root(world.store, inner) == outer
