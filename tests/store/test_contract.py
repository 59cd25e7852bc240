"""One suite for every kind of store: bare, packed by git, a project's, a worktree's."""

from collections.abc import Callable

import pytest
from store.conftest import Backend
from store.story import AGENT, CLOSURE, THREAD, WORKFLOW, Story, list_tree, signed, tell_small_story

from uwf_git.model.builtin import TEXT
from uwf_git.model.node import build_node
from uwf_git.store.lookup import NodeLookup, put_nodes
from uwf_git.store.threads.heads import (
    HeadMoved,
    NoSuchThread,
    ThreadExists,
    advance_head,
    create_head,
    find_head,
    get_head,
)
from uwf_git.store.threads.history import read_snapshot, walk_history

Clock = Callable[[], int]
Golden = Callable[[str, str | bytes], None]


def test_the_same_thread_has_the_same_object_ids_everywhere(
    backend: Backend, clock: Clock, golden: Golden
) -> None:
    head = tell_small_story(backend.store, clock).head
    store = backend.settle()
    told = [f"{each.commit.oid} {each.subject}" for each in walk_history(store, head.commit)]
    tree = list_tree(store.objects, read_snapshot(store, head.commit).commit.tree)
    golden("store/thread.txt", "\n".join([*told, "", *tree, ""]))


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


def test_of_two_steps_from_one_head_the_second_learns_that_it_lost(
    backend: Backend, clock: Clock
) -> None:
    story = Story(backend.store, clock)
    seen, late = story.head, story.write_step("writer", "late")
    winner = story.step(text="first")
    with pytest.raises(HeadMoved, match=THREAD):
        advance_head(backend.settle(), seen, late)
    assert get_head(backend.store, THREAD) == winner


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


def test_every_commit_holds_the_closure_of_its_thread(backend: Backend, clock: Clock) -> None:
    story = tell_small_story(backend.store, clock)
    for snapshot in walk_history(backend.settle(), story.head.commit):
        for node in (WORKFLOW, *CLOSURE, AGENT):
            assert snapshot.get_node(node.hash) == node


def test_the_clock_of_a_thread_never_goes_back(backend: Backend, clock: Clock) -> None:
    story = Story(backend.store, clock)
    story.clock = lambda: 0
    story.step()
    times = [each.commit.time_s for each in walk_history(backend.settle(), story.head.commit)]
    assert times == [clock() // 1000 - 1] * 2


def test_putting_the_same_nodes_again_changes_nothing(backend: Backend, clock: Clock) -> None:
    node = build_node(TEXT, "one", timestamp=5)
    put_nodes(backend.store, [node], signed(clock()))
    store = backend.settle()
    before = store.refs.find("refs/cas/nodes")
    assert not put_nodes(store, [node._replace(timestamp=9)], signed(clock()))
    assert store.refs.find("refs/cas/nodes") == before
    assert NodeLookup(store).get(node.hash).timestamp == 5
