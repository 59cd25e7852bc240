import pytest
from commands.world import World, says
from refusing import refuses

from uwf_git.commands.start import find_fork_point, find_turn_of
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import Snapshot, preserve_commit


@pytest.fixture
def thread(world: World) -> ThreadId:
    thread = world.stepped()
    world.fail(thread)
    world.retry(thread)
    world.step(thread)
    return thread


def find(world: World, thread: ThreadId, text: str) -> Snapshot:
    return find_fork_point(world.store, get_head(world.store, thread), text)


def test_kept_commit_is_found(world: World, thread: ThreadId) -> None:
    start = find(world, thread, "0").commit.oid
    other = world.snapshot(thread).commit.parents[0]
    assert find(world, thread, other[:9]).commit.oid == other
    world.store.refs.advance(f"refs/threads/{thread}", seen=world.tip(thread),
                             to=start)  # fmt: skip
    with refuses("no-such-step"):
        find(world, thread, other[:9])
    preserve_commit(world.store, thread, other)
    assert find(world, thread, other[:9]).commit.oid == other


@pytest.mark.parametrize("text", ["3", "zzzz", "", "f" * 40, "HEAD", "0123456789ABC", "-1"])
def test_missing_fork_point_is_reported(text: str, world: World, thread: ThreadId) -> None:
    with refuses("no-such-step"):
        find(world, thread, text)


def test_commit_of_another_thread_is_none_of_this_one(world: World, thread: ThreadId) -> None:
    other = world.start()
    with refuses("no-such-step"):
        find(world, thread, world.tip(other))


def test_number_that_kept_work_has_as_well_means_neither(world: World, thread: ThreadId) -> None:
    kept = world.snapshot(thread).commit
    world.store.refs.advance(f"refs/threads/{thread}", seen=kept.oid, to=kept.parents[0])
    world.step(thread)
    preserve_commit(world.store, thread, kept.oid)
    with refuses("ambiguous-step") as caught:
        find(world, thread, "2")
    assert caught.value.facts["matches"] == [world.tip(thread), kept.oid]


def turn_of(world: World, thread: ThreadId, role: str) -> Snapshot:
    return find_turn_of(world.store, get_head(world.store, thread), role)


def test_turn_of_a_role_comes_after_the_commit_before_its_newest_step(world: World) -> None:
    thread = world.stepped(*map(says, ({"text": "a"}, {"ok": False}, {"text": "b"}, {"ok": False})))

    writer, checker = turn_of(world, thread, "writer"), turn_of(world, thread, "checker")

    assert (writer.record.event, writer.record.depth) == ("step", 2)
    assert (checker.record.depth, checker.commit.oid) == (
        3, world.snapshot(thread).commit.parents[0],
    )  # fmt: skip


def test_what_was_said_between_try_and_step_stays(world: World, thread: ThreadId) -> None:
    assert turn_of(world, thread, "checker").record.event == "retry"


def test_role_without_a_step_is_reported_with_those_that_have_one(world: World) -> None:
    thread = world.begun()
    with refuses("role-never-acted", match="role checker has taken no step") as none_yet:
        turn_of(world, thread, "checker")
    world.step(thread)
    with refuses("role-never-acted", match="role checker has taken no step") as never:
        turn_of(world, thread, "checker")
    with refuses("role-never-acted", match="has no role 'boss'") as unknown:
        turn_of(world, thread, "boss")

    assert none_yet.value.hint == "steps were taken by no role yet"
    assert never.value.hint == "steps were taken by writer"
    assert unknown.value.hint == "its roles are writer, checker"
