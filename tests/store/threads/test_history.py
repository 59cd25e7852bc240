"""Step chains; test_chain_cycles.py tests chains that lead back into themselves."""

import itertools
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from dulwich.objects import Blob, ShaFile, Tree
from refusing import refuses
from store.story import AGENT, THREAD, WORKFLOW, Story, list_tree, signed, tell_small_story
from store.test_damage import rewritten

from uwf_git.model.builtin import STEP
from uwf_git.model.event_folds import Cause, Words
from uwf_git.model.event_rules import apply_event
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.workflow import NotAWorkflow
from uwf_git.store.nodes import FILE_MODE, TREE_MODE, DamagedNode, MissingNode, encode_node
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.objects.objects import ObjectStore, get_tree
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads import history
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    StepChain,
    get_graph,
    get_role,
    get_schema,
    get_workflow,
    list_preserved,
    list_preserved_threads,
    preserve_commit,
    read_snapshot,
    read_standing,
    record_next,
    record_start,
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
    lost = Story(store, clock).write_step("writer", "nobody saw this")
    preserve_commit(store, THREAD, lost)
    preserve_commit(store, THREAD, lost)
    git("gc", "--quiet", "--prune=now", cwd=store.path)
    assert list_preserved(store, THREAD) == [lost]
    assert git("cat-file", "-t", lost, cwd=store.path) == "commit\n"

    release(store, THREAD, lost)
    release(store, THREAD, lost)
    assert list_preserved(store, THREAD) == []


def test_threads_for_which_something_is_kept_are_listed(
    store: Store, story: Story, git: Callable[..., str]
) -> None:
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


# Snapshots; test_damage.py tests snapshots of damaged stores.

# Workflows, roles, graphs and schemas: parsed once a blob, shared unchangeable, never mistaken.


def test_no_reader_can_change_what_others_get(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    workflow = get_workflow(snapshot, WORKFLOW.hash)
    assert get_workflow(snapshot, WORKFLOW.hash) is workflow
    role = get_role(snapshot, next(iter(workflow.roles.values())))
    shared = [
        workflow.roles,
        workflow.agent_overrides,
        get_graph(snapshot, workflow.get_moderator()),
        get_schema(snapshot, role.output_schema),
    ]
    for each in shared:
        with pytest.raises(TypeError, match="cannot be changed"):
            each.clear()
    with pytest.raises(AttributeError):
        role.name = "other"  # type: ignore[misc]  # that is the point


def _with_blob(
    objects: ObjectStore, name: NodeHash, content: bytes
) -> Callable[[Tree, list[ShaFile]], None]:
    """Return a change that puts *content* where the node *name* is."""

    def change(tree: Tree, added: list[ShaFile]) -> None:
        blob = Blob.from_string(content)
        parts = [b"nodes", name[0].encode(), name[1].encode()]
        folders, place = [tree], tree
        for part in parts:
            copy = Tree()
            for entry in get_tree(objects, place[part][1]).items():
                copy[entry.path] = (entry.mode, entry.sha)
            folders.append(copy)
            place = copy
        place[f"{name[2:]}.json".encode()] = (FILE_MODE, blob.id)
        for part, above, below in zip(parts[::-1], folders[-2::-1], folders[:0:-1], strict=True):
            above[part] = (TREE_MODE, below.id)
        added += [blob, *folders[1:]]

    return change


def test_other_blob_under_a_known_name_is_not_taken_for_the_known_one(
    store: Store, story: Story
) -> None:
    get_workflow(story.snapshot, WORKFLOW.hash)

    forged = rewritten(story, _with_blob(store.objects, WORKFLOW.hash, encode_node(AGENT)[1]))

    with pytest.raises(DamagedNode, match="holds other content"):
        get_workflow(forged, WORKFLOW.hash)


def test_known_blob_under_another_name_is_damage(store: Store, story: Story) -> None:
    workflow = get_workflow(story.snapshot, WORKFLOW.hash)
    role = next(iter(workflow.roles.values()))
    get_role(story.snapshot, role)
    content = encode_node(story.snapshot.get_node(role))[1]

    forged = rewritten(story, _with_blob(store.objects, workflow.get_moderator(), content))

    with pytest.raises(DamagedNode, match="holds other content"):
        get_graph(forged, workflow.get_moderator())
    assert get_role(forged, role).name


def test_what_is_no_workflow_is_told_every_time(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    for _ in range(2):
        with pytest.raises(NotAWorkflow):
            get_workflow(snapshot, AGENT.hash)
        with pytest.raises(MissingNode):
            get_workflow(snapshot, NodeHash("0000000000000"))


def test_turn_began_where_its_record_says(store: Store, clock: Callable[[], int]) -> None:
    snapshot = Story(store, clock).snapshot
    paused = snapshot._replace(record=snapshot.record._replace(turn="1" * 40))
    assert (snapshot.turn_start, paused.turn_start) == (snapshot.commit.oid, "1" * 40)


def test_reading_the_present_reads_no_node(store: Store, clock: Callable[[], int]) -> None:
    """A step costs the same at any depth: objects that it does not need may be missing."""
    story = tell_small_story(store, clock)
    snapshot = read_snapshot(open_store(store.path), story.head.commit)
    kept = {
        snapshot.commit.oid,
        snapshot.commit.tree.decode(),
        snapshot.get_entry("now.json").decode(),
    }
    for path in Path(store.path, "objects").glob("??/*"):
        if path.parent.name + path.name not in kept:
            path.unlink()
    assert read_snapshot(open_store(store.path), story.head.commit).get_present().depth == 2


# Recording; what must hold on every kind of store is in test_contract.py.


def files(snapshot: Snapshot) -> dict[str, str]:
    lines = list_tree(snapshot.objects, snapshot.commit.tree)
    return {
        path: mode_and_oid for mode_and_oid, _tab, path in (line.partition("\t") for line in lines)
    }


def test_nothing_ever_leaves_the_tree_of_a_thread(store: Store, clock: Callable[[], int]) -> None:
    trees = [
        {item for item in files(snapshot).items() if item[0].startswith("nodes/")}
        for snapshot in walk_history(store, tell_small_story(store, clock).head.commit)
    ]
    for newer, older in itertools.pairwise(trees):
        assert older <= newer


def test_folding_the_history_gives_the_present(store: Store, clock: Callable[[], int]) -> None:
    snapshots = list(walk_history(store, tell_small_story(store, clock).head.commit))[::-1]
    standing = read_standing(snapshots[0])
    for snapshot in snapshots[1:]:
        record = snapshot.record
        cause = Cause(snapshot.get_head_node(), record.role, record.agent)
        if record.event == "attempt":
            last = snapshot.get_present().last_attempt
            assert last is not None
            cause = cause._replace(node=snapshot.get_node(last))
        standing = apply_event(standing, record.event, cause)
        standing = standing._replace(commit=snapshot.commit.oid)
        assert read_standing(snapshot) == standing


def test_a_name_with_another_payload_stops_the_step(store: Store, clock: Callable[[], int]) -> None:
    before = Story(store, clock).snapshot
    start = before.get_start()
    twin = build_node(start.type, {**start.payload, "prompt": "another"}, timestamp=0)
    transition = NewCommit(
        before.record, Words("text"), before.get_present(), (twin._replace(hash=start.hash),)
    )
    with refuses("node-collision", match=start.hash):
        record_next(store, before, transition, signed(0))


def test_a_thread_cannot_begin_without_its_start(store: Store, clock: Callable[[], int]) -> None:
    before = Story(store, clock).snapshot
    transition = NewCommit(before.record, Words("text"), before.get_present())
    with pytest.raises(ValueError, match="needs a StartNode"):
        record_start(store, transition, signed(0))


def test_a_node_that_could_not_be_read_again_is_not_recorded(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    wrong = build_node(STEP, {"role": "writer"}, timestamp=0)
    transition = NewCommit(
        story.snapshot.record, Words("x"), story.snapshot.get_present(), nodes=(wrong,)
    )
    with pytest.raises(DamagedNode, match=wrong.hash):
        record_next(store, story.snapshot, transition, signed(clock()))
