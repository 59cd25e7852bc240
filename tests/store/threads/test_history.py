from collections.abc import Callable
from typing import Any

import pytest
from dulwich.objects import Commit, ObjectID
from store.loose import lose
from store.story import THREAD, Story, signed, tell_small_story

from uwf_git.model.thread import Event
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.objects.commit import CommitView, DamagedCommit, read_commit
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads import history
from uwf_git.store.threads.heads import ACTIVE
from uwf_git.store.threads.history import find_turn_start, walk_history
from uwf_git.store.threads.record import NewCommit, record_next
from uwf_git.store.threads.snapshot import read_snapshot

OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


def test_history_is_newest_first(store: Store, clock: Callable[[], int]) -> None:
    story = tell_small_story(store, clock)
    told = [each.subject for each in walk_history(store, story.head.commit)]
    assert told == [
        "end: completed",
        'checker: {"ok": true}',
        "writer: attempt 1 failed: exit status 1",
        "writer: An old silent pond",
        "start: Write a haiku.",
    ]


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
        store, before, NewCommit(record, "child", before.get_present()), signed(clock())
    )
    assert read_commit(store.objects, child).parents == (parent.head.commit,)
    assert [each.record.thread for each in walk_history(store, child)] == [OTHER]


def controlled(store: Store, tip: Oid, event: Event, clock: Callable[[], int], **now: Any) -> Oid:
    """Write a commit that only controls the thread, and move nothing."""
    before = read_snapshot(store, tip)
    record = before.record._replace(event=event, **now)
    present = before.get_present()._replace(**now)
    return record_next(store, before, NewCommit(record, "x", present), signed(clock()))


def test_turn_began_before_whatever_only_controlled_it(
    store: Store, clock: Callable[[], int]
) -> None:
    story = Story(store, clock)
    start = story.head.commit
    step = story.step().commit
    paused = controlled(store, step, "pause", clock)
    patched = controlled(store, paused, "patch", clock)

    for tip, begun in ((start, start), (step, step), (paused, step), (patched, step)):
        assert find_turn_start(store, read_snapshot(store, tip)) == begun


def test_another_workflow_begins_another_turn(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    other = story.snapshot.record.node
    paused = controlled(store, story.head.commit, "pause", clock)
    amended = controlled(store, paused, "amend", clock, workflow=other)
    patched = controlled(store, amended, "patch", clock)

    assert find_turn_start(store, read_snapshot(store, paused)) == story.head.commit
    assert find_turn_start(store, read_snapshot(store, amended)) == amended
    assert find_turn_start(store, read_snapshot(store, patched)) == amended


def test_each_control_is_read_once_however_often_its_turn_is_asked_for(
    store: Store, clock: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(store, clock)
    begun = tip = story.step().commit
    read: list[Oid] = []

    def read_and_count(objects: ObjectStore, oid: Oid) -> CommitView:
        read.append(oid)
        return read_commit(objects, oid)

    monkeypatch.setattr(history, "_STARTS", {})
    monkeypatch.setattr(history, "read_commit", read_and_count)
    for _time in range(3):
        events: tuple[Event, ...] = ("pause", "resume") * 5
        for event in events:
            tip = controlled(store, tip, event, clock)
        for _asked in range(3):
            assert find_turn_start(store, read_snapshot(store, tip)) == begun
    assert len(read) == len(set(read)) == 30


def test_turn_of_a_forged_thread_without_a_start_begins_at_its_first_commit(
    store: Store, clock: Callable[[], int]
) -> None:
    paused = controlled(store, Story(store, clock).head.commit, "pause", clock)
    commit = store.objects[ObjectID(paused.encode())]
    assert isinstance(commit, Commit)
    commit.parents = []
    store.objects.add_objects([(commit, None)])
    forged = Oid(commit.id.decode())

    assert find_turn_start(store, read_snapshot(store, forged)) == forged


def test_only_first_parents_are_followed(store: Store, clock: Callable[[], int]) -> None:
    story = Story(store, clock)
    other = Story(store, clock, OTHER)
    before = story.snapshot
    merged = NewCommit(before.record._replace(event="pause"), "merged", before.get_present())
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
    with pytest.raises(DamagedCommit, match=first):
        next(walk)
    assert store.refs.find(ACTIVE + THREAD) == story.head.commit
