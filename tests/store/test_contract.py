"""One suite for every kind of store: bare, packed by git, a project's, a worktree's."""

from collections.abc import Callable

import pytest
from refusing import refuses
from store.conftest import Backend
from store.story import AGENT, CLOSURE, THREAD, WORKFLOW, Story, list_tree, signed, tell_small_story

from uwf_git.model.builtin import META, TEXT
from uwf_git.model.names import ThreadId
from uwf_git.model.node import build_node
from uwf_git.store.lookup.lookup import NodeLookup, list_nodes, put_nodes
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.oid import Oid
from uwf_git.store.threads.heads import (
    ACTIVE,
    ARCHIVE,
    Head,
    HeadMoved,
    NoSuchThread,
    ThreadExists,
    advance_head,
    archive_head,
    create_head,
    find_head,
    get_head,
    list_threads,
    resolve_thread,
)
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import read_snapshot
from uwf_git.store.workflows import (
    SourceFiles,
    add_version,
    find_version,
    get_version_node,
    list_names,
    list_versions,
    read_sources,
)

Clock = Callable[[], int]
Golden = Callable[[str, str | bytes], None]

OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


def test_the_same_thread_has_the_same_object_ids_everywhere(
    backend: Backend, clock: Clock, golden: Golden
) -> None:
    head = tell_small_story(backend.store, clock).head
    store = backend.settle()
    told = [f"{each.commit.oid} {each.subject}" for each in walk_history(store, head.commit)]
    tree = list_tree(store.objects, read_snapshot(store, head.commit).commit.tree)
    golden("store/thread.txt", "\n".join([*told, "", *tree, ""]))


def test_a_new_head_is_found_where_it_was_put(backend: Backend, clock: Clock) -> None:
    head = Story(backend.store, clock).head
    store = backend.settle()
    assert find_head(store, THREAD) == get_head(store, THREAD) == head
    assert head == Head(THREAD, head.commit, archived=False)
    assert store.refs.find(ACTIVE + THREAD) == head.commit


def test_what_is_not_there_is_not_found(backend: Backend) -> None:
    assert find_head(backend.store, THREAD) is None
    with pytest.raises(NoSuchThread, match=THREAD):
        get_head(backend.store, THREAD)


def test_a_thread_is_created_once(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    other = story.write_step("writer", "text")
    with pytest.raises(ThreadExists, match=THREAD):
        create_head(backend.settle(), THREAD, other)
    assert get_head(backend.store, THREAD) == story.head


def test_an_archived_thread_is_not_created_again(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    story.end()
    with pytest.raises(ThreadExists):
        create_head(backend.settle(), THREAD, story.head.commit)


def test_a_head_advances_from_where_it_was_seen(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    story.store = backend.settle()
    head = story.step()
    assert get_head(backend.settle(), THREAD) == head


def test_of_two_steps_from_one_head_the_second_learns_that_it_lost(
    backend: Backend, clock: Clock
) -> None:
    story = Story(backend.store, clock)
    seen, late = story.head, story.write_step("writer", "late")
    winner = story.step(text="first")
    with pytest.raises(HeadMoved, match=THREAD):
        advance_head(backend.settle(), seen, late)
    assert get_head(backend.store, THREAD) == winner


def test_a_missing_head_does_not_advance(backend: Backend, clock: Clock) -> None:
    head = Story(backend.store, clock).head
    with pytest.raises(HeadMoved):
        advance_head(backend.settle(), Head(OTHER, head.commit, archived=False), head.commit)


def test_ending_moves_the_head_to_the_archive(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    story.store = backend.settle()
    head = story.end()
    store = backend.settle()
    assert get_head(store, THREAD) == Head(THREAD, head.commit, archived=True)
    assert store.refs.find(ACTIVE + THREAD) is None
    assert store.refs.find(ARCHIVE + THREAD) == head.commit


def test_an_end_from_a_stale_head_changes_nothing(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    seen, end = story.head, story.write_end()
    story.step()
    with pytest.raises(HeadMoved):
        archive_head(backend.settle(), seen, end)
    assert get_head(backend.store, THREAD) == story.head
    assert backend.store.refs.find(ARCHIVE + THREAD) is None


def test_an_archived_thread_neither_advances_nor_ends_again(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    seen, late = story.head, story.write_step("writer", "late")
    end = story.end()
    store = backend.settle()
    for move in (advance_head, archive_head):
        with pytest.raises(HeadMoved):
            move(store, seen, late)
    assert get_head(store, THREAD) == end


def test_what_a_cut_short_move_to_the_archive_left_is_litter(
    backend: Backend, clock: Clock
) -> None:
    story = Story(backend.store, clock)
    active, late = story.head, story.write_step("writer", "late")
    end = story.end()
    backend.store.refs.create(ACTIVE + THREAD, active.commit)
    store = backend.settle()
    assert get_head(store, THREAD) == end
    assert list_threads(store, archived=False) == []
    assert list_threads(store, archived=True) == [THREAD]
    assert resolve_thread(store, THREAD[:5]) == THREAD
    with pytest.raises(HeadMoved):
        advance_head(store, active, late)


def test_threads_are_listed_newest_first(
    backend: Backend, clock: Clock, thread_ids: Callable[[], ThreadId]
) -> None:
    stories = [Story(backend.store, clock, thread_ids()) for _count in range(6)]
    for story in (stories[1], stories[4]):
        story.end()
    store = backend.settle()
    numbers = {story.thread: number for number, story in enumerate(stories)}
    active, archived = (
        [numbers[thread] for thread in list_threads(store, archived=archived)]
        for archived in (False, True)
    )
    assert (active, archived) == ([5, 3, 2, 0], [4, 1])


def test_refs_that_are_no_threads_are_not_listed(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    for name in ("notes", "01J7K9M2XNPQR5VWBCDF8G3H4", THREAD.lower()):
        backend.store.refs.create(ACTIVE + name, story.head.commit)
        backend.store.refs.create(ARCHIVE + name, story.head.commit)
    store = backend.settle()
    assert list_threads(store, archived=False) == [THREAD]
    assert list_threads(store, archived=True) == []


def test_refs_are_created_moved_and_deleted_only_from_what_was_seen(
    backend: Backend, clock: Clock
) -> None:
    story = Story(backend.store, clock)
    one, other = story.head.commit, story.write_step("writer", "text")
    backend.store.refs.create("refs/kept/other", other)
    refs = backend.settle().refs
    name, to_name = "refs/cas/a", "refs/cas/b"
    assert refs.create(name, one)
    assert not refs.create(name, other)
    refs = backend.settle().refs
    assert not refs.advance(name, seen=other, to=other)
    assert not refs.delete(name, seen=other)
    assert not refs.move(name, seen=other, to_name=to_name, to=other)
    assert (refs.find(name), refs.find(to_name)) == (one, None)
    assert refs.advance(name, seen=one, to=other)
    refs = backend.settle().refs
    assert refs.create(to_name, one)
    assert not refs.move(name, seen=other, to_name=to_name, to=one)
    assert refs.names("refs/cas/") == ["a", "b"]
    assert refs.delete(to_name, seen=one)
    assert not refs.delete(to_name, seen=one)
    refs = backend.settle().refs
    assert refs.move(name, seen=other, to_name=to_name, to=one)
    refs = backend.settle().refs
    assert (refs.find(name), refs.find(to_name)) == (None, one)
    assert refs.names("refs/cas/") == ["b"]
    assert refs.names("refs/nothing/") == []


def test_a_snapshot_has_the_thread_as_its_commit_has_it(backend: Backend, clock: Clock) -> None:
    story = tell_small_story(backend.store, clock)
    snapshot = read_snapshot(backend.settle(), story.head.commit)
    assert (snapshot.record.event, snapshot.record.status) == ("end", "completed")
    assert (snapshot.record.depth, snapshot.record.role) == (2, None)
    assert snapshot.subject == "end: completed after 2 steps"
    assert snapshot.get_start().payload["prompt"] == "Write a haiku."
    assert snapshot.get_head_node().payload["role"] == "checker"
    present = snapshot.get_present()
    assert present.visits == {"writer": 1, "checker": 1}
    assert (present.state, present.usage) == ({"round": 1}, {"tokens": 5})


def test_the_chain_goes_from_the_newest_step_to_the_start(backend: Backend, clock: Clock) -> None:
    story = tell_small_story(backend.store, clock)
    snapshot = read_snapshot(backend.settle(), story.head.commit)
    chain = list(snapshot.walk_chain())
    assert [node.payload.get("role") for node in chain] == ["checker", "writer", None]
    assert chain[-1] == snapshot.get_start()


def test_every_commit_holds_the_closure_of_its_thread(backend: Backend, clock: Clock) -> None:
    story = tell_small_story(backend.store, clock)
    store = backend.settle()
    for snapshot in walk_history(store, story.head.commit):
        for node in (WORKFLOW, *CLOSURE, AGENT):
            assert snapshot.get_node(node.hash) == node


def test_a_node_that_the_thread_does_not_hold_is_missed(backend: Backend, clock: Clock) -> None:
    snapshot = Story(backend.store, clock).snapshot
    stranger = build_node(TEXT, "a stranger", timestamp=0).hash
    with pytest.raises(MissingNode, match=stranger):
        snapshot.get_node(stranger)


def test_the_clock_of_a_thread_never_goes_back(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    story.clock = lambda: 0
    story.step()
    times = [each.commit.time_s for each in walk_history(backend.settle(), story.head.commit)]
    assert times == [clock() // 1000 - 1] * 2


def test_nodes_that_were_put_are_found_again(backend: Backend, clock: Clock) -> None:
    nodes = [build_node(TEXT, text, timestamp=5) for text in ("one", "two")]
    assert put_nodes(backend.store, iter(nodes), signed(clock()))
    store = backend.settle()
    assert [NodeLookup(store).find(node.hash) for node in nodes] == nodes
    assert {META, *(node.hash for node in nodes)} <= set(list_nodes(store))


def test_putting_the_same_nodes_again_changes_nothing(backend: Backend, clock: Clock) -> None:
    node = build_node(TEXT, "one", timestamp=5)
    put_nodes(backend.store, [node], signed(clock()))
    store = backend.settle()
    before = store.refs.find("refs/cas/nodes")
    assert not put_nodes(store, [node._replace(timestamp=9)], signed(clock()))
    assert store.refs.find("refs/cas/nodes") == before
    assert NodeLookup(store).get(node.hash).timestamp == 5


def test_the_nodes_of_threads_are_found_without_naming_the_thread(
    backend: Backend, clock: Clock
) -> None:
    story = tell_small_story(backend.store, clock)
    step = story.snapshot.get_head_node()
    assert NodeLookup(backend.settle()).get(step.hash) == step


def test_a_workflow_has_its_versions_newest_first(backend: Backend, clock: Clock) -> None:
    added = ("demo", WORKFLOW, CLOSURE)
    one = add_version(
        backend.store, None, added=added, source=SourceFiles(b"one"), signing=signed(clock())
    )
    store = backend.settle()
    two = add_version(store, one, added=added, source=SourceFiles(b"two"), signing=signed(clock()))
    store = backend.settle()
    assert list_names(store) == ["demo"]
    assert find_version(store, "demo") == two
    assert [version.commit.oid for version in list_versions(store)] == [
        two.commit.oid,
        one.commit.oid,
    ]
    assert [read_sources(store.objects, version.commit).workflow for version in (one, two)] == [
        b"one",
        b"two",
    ]
    assert get_version_node(store, two, WORKFLOW.hash) == WORKFLOW


def test_of_two_versions_after_one_the_second_is_refused(backend: Backend, clock: Clock) -> None:
    added = ("demo", WORKFLOW, CLOSURE)
    seen = add_version(
        backend.store, None, added=added, source=SourceFiles(b"one"), signing=signed(clock())
    )
    two = add_version(
        backend.store, seen, added=added, source=SourceFiles(b"two"), signing=signed(clock())
    )
    store = backend.settle()
    for before in (None, seen):
        with refuses("workflow-moved", match="demo"):
            add_version(
                store, before, added=added, source=SourceFiles(b"late"), signing=signed(clock())
            )
    assert find_version(store, "demo") == two


def test_a_missing_commit_is_not_taken_for_a_thread(backend: Backend, clock: Clock) -> None:
    missing = Oid("1" * 40)
    backend.store.refs.create(ACTIVE + THREAD, missing)
    assert get_head(backend.store, THREAD).commit == missing
    Story(backend.store, clock, OTHER)
    assert list_threads(backend.store, archived=False) == [OTHER, THREAD]
