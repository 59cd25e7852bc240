import pytest
from commands.world import World, fails

from uwf_git.commands.fork_point import AmbiguousStep, NoSuchStep, find_fork_point
from uwf_git.commands.thread_step import TurnFailed
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import get_head
from uwf_git.store.kept import keep_commit
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import Snapshot


@pytest.fixture
def thread(world: World) -> ThreadId:
    thread = world.begun()
    world.step(thread)
    with pytest.raises(TurnFailed):
        world.step(thread, fails())
    world.step(thread)
    return thread


def find(world: World, thread: ThreadId, text: str) -> Snapshot:
    return find_fork_point(world.store, get_head(world.store, thread), text)


@pytest.mark.parametrize(("number", "event"), [("0", "start"), ("1", "step"), ("2", "step")])
def test_number_means_the_commit_of_that_step(
    number: str, event: str, world: World, thread: ThreadId
) -> None:
    record = find(world, thread, number).record
    assert (record.event, record.depth) == (event, int(number))


def test_commits_and_nodes_may_be_shortened(world: World, thread: ThreadId) -> None:
    tip = world.snapshot(thread)
    for text in (tip.commit.oid, tip.commit.oid[:9], tip.record.node, tip.record.node[:8].lower()):
        assert find(world, thread, text).commit.oid == tip.commit.oid


def test_failed_try_is_named_by_its_commit(world: World, thread: ThreadId) -> None:
    attempt = world.snapshot(thread).commit.parents[0]
    assert find(world, thread, attempt[:12]).record.event == "attempt"


def test_kept_commit_is_found(world: World, thread: ThreadId) -> None:
    start = find(world, thread, "0").commit.oid
    other = world.snapshot(thread).commit.parents[0]
    world.store.refs.advance(f"refs/threads/{thread}", seen=world.snapshot(thread).commit.oid,
                             to=start)  # fmt: skip
    with pytest.raises(NoSuchStep):
        find(world, thread, other[:9])
    keep_commit(world.store, thread, other)
    assert find(world, thread, other[:9]).commit.oid == other


@pytest.mark.parametrize("text", ["3", "zzzz", "", "f" * 40, "HEAD", "0123456789ABC", "-1"])
def test_what_the_thread_has_not_is_told(text: str, world: World, thread: ThreadId) -> None:
    with pytest.raises(NoSuchStep):
        find(world, thread, text)


def test_commit_of_another_thread_is_none_of_this_one(world: World, thread: ThreadId) -> None:
    other = world.start()
    with pytest.raises(NoSuchStep):
        find(world, thread, world.snapshot(other).commit.oid)


def test_commit_that_is_no_thread_is_none(world: World, thread: ThreadId) -> None:
    version = world.store.refs.find("refs/workflows/demo")
    assert version is not None
    with pytest.raises(NoSuchStep):
        find(world, thread, version)


def test_several_are_listed() -> None:
    error = AmbiguousStep(ThreadId("T"), "ab", [Oid("ab1"), Oid("ab2")])
    assert "ab1, ab2" in error.message
