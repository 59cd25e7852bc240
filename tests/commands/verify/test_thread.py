"""Histories that are not what their ref says, and those that are."""

from collections.abc import Callable

import pytest
from commands.forging import add, commits_of, forge, holds, place, run_by, says, tip_of
from dulwich.objects import Commit, ObjectID
from store.story import THREAD, Story, signed

from uwf_git.commands.verify.thread import check_thread
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.history import build_next, read_snapshot, read_standing, record_next

REF = ACTIVE + THREAD
OTHER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")
NOWHERE = Oid("1" * 40)


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread of three steps."""
    story = Story(store, clock)
    for text in ("one", "two", "three"):
        story.step(text=text)
    return story


def told(
    store: Store,
    tip: str,
    *,
    thread: ThreadId = THREAD,
    archived: bool = False,
    known: Oid | None = None,
) -> list[str]:
    found = check_thread(store, thread, Oid(tip), archived=archived, known=known)
    return [each.message for each in found]


def forked(store: Store, at: Oid, thread: ThreadId, now_ms: int, **changes: object) -> Oid:
    """Write the first commit of a fork."""
    point = read_snapshot(store, at)
    new = build_next(read_standing(point), "fork", Cause(thread=thread, note="another way"))
    record = new.record._replace(**changes)  # type: ignore[arg-type] # the fields of a record
    return record_next(store, point, new._replace(record=record), signed(now_ms))


def test_only_what_is_not_known_is_looked_at(store: Store, story: Story) -> None:
    oids = forge(store, REF, {1: says("Uwf-Role: writer", "Uwf-Role: checker")})

    assert told(store, oids[-1]) != []
    assert told(store, oids[-1], known=oids[1]) == []
    assert told(store, oids[1], known=oids[1]) == []
    assert told(store, oids[-1], known=oids[0]) != []


def test_history_without_the_known_commit_is_reported(store: Store, story: Story) -> None:
    before = story.head.commit
    oids = forge(store, REF, {1: run_by(b"Mallory <m@x>")})

    assert told(store, oids[-1], known=before) == [
        f"{oids[-1]} does not descend from {before}, where {REF} was"
    ]
    assert told(store, oids[-1]) == []


def test_ref_at_a_commit_of_another_thread_is_reported_once(
    store: Store, story: Story, clock: Callable[[], int]
) -> None:
    other = Story(store, clock, OTHER)
    other.step()

    assert told(store, other.head.commit) == [f"{REF} points at a commit of thread {OTHER}"]
    assert told(store, other.head.commit, known=other.head.commit) == [
        f"{REF} points at a commit of thread {OTHER}"
    ]


def test_ref_at_an_object_that_is_no_commit_is_reported(store: Store, story: Story) -> None:
    tree = read_snapshot(store, story.head.commit).commit.tree.decode()

    assert told(store, NOWHERE) == [f"the history of {REF} breaks off: commit {NOWHERE} is missing"]
    assert told(store, tree) == [f"the history of {REF} breaks off: commit {tree} is not a commit"]


def test_incomplete_history_is_reported_and_the_rest_checked(store: Store, story: Story) -> None:
    def cut(commit: Commit) -> None:
        commit.parents = [ObjectID(NOWHERE.encode())]

    oids = forge(store, REF, {2: cut, 3: says("Uwf-Depth: 3", "Uwf-Depth: 4")})

    assert told(store, oids[-1]) == [
        f"the history of {REF} breaks off: commit {NOWHERE} is missing",
        "Uwf-Depth is 4, and must be 3",
    ]


def test_thread_that_goes_on_from_another_without_a_fork_is_reported(
    store: Store, story: Story
) -> None:
    commit = commits_of(store, story.head.commit)[-1].copy()
    assert isinstance(commit, Commit)
    says(f"Uwf-Thread: {THREAD}", f"Uwf-Thread: {OTHER}")(commit)
    forged = add(store, commit).decode()

    assert told(store, forged, thread=OTHER, known=Oid(commit.parents[0].decode())) == [
        f"commit {forged} goes on from one of thread {THREAD}, and is no fork",
        f"Uwf-Thread is {OTHER}, and must be {THREAD}",
    ]


def test_status_has_to_agree_with_the_place(store: Store, story: Story) -> None:
    active = story.head.commit
    ended = story.end().commit

    assert told(store, active, archived=False) == told(store, ended, archived=True) == []
    assert told(store, active, archived=True) == [
        f"{ARCHIVE}{THREAD} is in the archive, and the thread has not ended: it is ready"
    ]
    assert told(store, ended, archived=False) == [
        f"{REF} is active, and the thread has ended: it is completed"
    ]


def test_fork_that_lies_about_its_origin_is_reported(
    store: Store, story: Story, clock: Callable[[], int]
) -> None:
    third = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4W")
    lies = forked(store, story.head.commit, OTHER, clock(), forked_from=third)
    own = forked(store, story.head.commit, THREAD, clock())
    back = forked(store, forked(store, story.head.commit, OTHER, clock()), THREAD, clock())

    assert told(store, lies, thread=OTHER) == [f"Uwf-Forked-From is {third}, and must be {THREAD}"]
    for twice, known in ((own, None), (own, story.head.commit), (back, None)):
        assert told(store, twice, known=known) == [f"{REF} comes back to thread {THREAD} by a fork"]


def test_what_lies_behind_a_fork_is_looked_at_as_well(
    store: Store, story: Story, clock: Callable[[], int]
) -> None:
    oids = forge(store, REF, {1: says("Uwf-Role: writer", "Uwf-Role: checker")})

    (found,) = check_thread(store, OTHER, forked(store, oids[-1], OTHER, clock()), archived=False)
    assert found.commit == oids[1]
    assert found.ref == ACTIVE + OTHER


def test_node_that_was_lost_or_replaced_is_reported_where_it_was(
    store: Store, story: Story
) -> None:
    head = read_snapshot(store, tip_of(store, REF)).get_head_node()
    prev = head.payload["prev"]["$ref"]
    path = place(prev)
    oids = forge(store, REF, {3: holds(store, path, None)})
    found = list(check_thread(store, THREAD, oids[-1], archived=False))
    assert {(each.message, each.commit) for each in found} == {
        (f"node {prev} was in the commit before and is missing", oids[3]),
        (f"node {head.hash} refers to {prev}, which is not in the same commit", oids[3]),
    }

    oids = forge(store, REF, {3: holds(store, path, b"{}")})
    assert f"node {prev} was replaced: a node keeps the file it had first" in told(store, oids[-1])
