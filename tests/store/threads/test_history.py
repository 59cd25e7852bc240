from collections.abc import Callable

from dulwich.objects import Commit, ObjectID
from refusing import refuses
from store.loose import lose
from store.story import THREAD, Story, signed

from uwf_git.model.builtin import SIGNAL, reference
from uwf_git.model.event_folds import Cause, Words
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.thread import Event
from uwf_git.store.objects.commit import read_commit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.record import NewCommit, build_next, read_standing, record_next
from uwf_git.store.threads.snapshot import read_snapshot

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
