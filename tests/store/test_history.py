from collections.abc import Callable
from pathlib import Path

import pytest
from dulwich.objects import Commit, ObjectID
from store.story import THREAD, Story, signed, tell_small_story

from uwf_git.model.thread_id import ThreadId
from uwf_git.store.commit import DamagedCommit, read_commit
from uwf_git.store.heads import ACTIVE
from uwf_git.store.history import walk_history
from uwf_git.store.record import Transition, record_next
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import read_snapshot
from uwf_git.store.store import Store

OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


def test_history_is_told_newest_first(memory: Store, clock: Callable[[], int]) -> None:
    story = tell_small_story(memory, clock)
    told = [each.subject for each in walk_history(memory, story.head.commit)]
    assert told == [
        "end: completed",
        "checker: --- Uwf-Status: completed ümläut",
        "writer: failed: exit status 1",
        "writer: An old silent pond",
        "start: Write a haiku.",
    ]


def test_history_from_the_middle_is_what_was_before(
    memory: Store, clock: Callable[[], int]
) -> None:
    story = Story(memory, clock)
    story.step()
    middle = story.head.commit
    story.step(text="more")
    assert [each.record.event for each in walk_history(memory, middle)] == ["step", "start"]


def test_a_childs_story_ends_at_its_own_start(memory: Store, clock: Callable[[], int]) -> None:
    """Its first commit may have a parent: the commit of the thread that it was split from."""
    parent = Story(memory, clock)
    parent.step()
    before = parent.snapshot
    record = before.record._replace(event="start", thread=OTHER)
    child = record_next(
        memory, before, Transition(record, "child", before.get_present()), signed(clock())
    )
    assert read_commit(memory.objects, child).parents == (parent.head.commit,)
    assert [each.record.thread for each in walk_history(memory, child)] == [OTHER]


def test_only_first_parents_are_followed(memory: Store, clock: Callable[[], int]) -> None:
    story = Story(memory, clock)
    other = Story(memory, clock, OTHER)
    before = story.snapshot
    merged = Transition(before.record._replace(event="join"), "joined", before.get_present())
    oid = record_next(memory, before, merged, signed(clock()))
    commit = memory.objects[ObjectID(oid.encode())]
    assert isinstance(commit, Commit)
    commit.parents = [*commit.parents, ObjectID(other.head.commit.encode())]
    memory.objects.add_objects([(commit, None)])
    events = [
        (each.record.event, each.record.thread)
        for each in walk_history(memory, Oid(commit.id.decode()))
    ]
    assert events == [("join", THREAD), ("start", THREAD)]


def test_a_thread_of_thousands_is_not_read_before_it_is_asked_for(
    memory: Store, clock: Callable[[], int]
) -> None:
    story = Story(memory, clock)
    newest = next(walk_history(memory, story.head.commit))
    assert newest.record == read_snapshot(memory, story.head.commit).record


def test_history_that_is_broken_is_told_where(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    first = story.head.commit
    story.step()
    Path(store.path, "objects", first[:2], first[2:]).unlink()
    walk = walk_history(store, story.head.commit)
    assert next(walk).record.event == "step"
    with pytest.raises(DamagedCommit, match=first):
        next(walk)
    assert store.refs.find(ACTIVE + THREAD) == story.head.commit
