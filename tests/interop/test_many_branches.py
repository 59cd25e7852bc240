"""Many branches: split, played, joined, checked by git, and shared through a hub."""

from commands.crowd import at_once
from commands.flows import FILES, Split, finish, lists, plays, push_costs, split_files
from commands.world import Git, replied
from interop.hub import Hub, fetch_all, hub, push_all

from uwf_git.commands.remote.fetch import clone_store
from uwf_git.commands.remote.push import push_remote
from uwf_git.commands.verify.verify import verify
from uwf_git.store.store import open_store

__all__ = ["hub"]

MANY = 100


def test_a_hundred_branches_are_joined_shared_and_sound(hub: Hub, git: Git) -> None:
    world = hub.clone()
    at = split_files(world, MANY)
    assert len(at.children) == MANY
    at.finish_branches()
    assert at.step() == "ready"
    assert len(at.tip.commit.parents) == 1 + MANY
    finish(world, at.thread)
    assert verify(world.store, []).troubles == ()

    assert push_remote(world.store, world.caller, "hub", [at.thread]).failure() is None

    assert git("fsck", "--strict", "--no-dangling", cwd=hub.path) == ""
    assert verify(open_store(str(hub.path)), []).troubles == ()
    path = str(hub.place / "other.git")
    assert clone_store(world.caller, str(hub.path), path).fetched.failure() is None
    git("gc", "--quiet", cwd=path)
    assert verify(open_store(path), []).troubles == ()


def test_a_push_of_many_branches_costs_at_most_three_of_one_thread(hub: Hub) -> None:
    many, one = push_costs(hub.clone(), hub.path, 32)

    assert many < 3 * one


def test_three_clones_play_six_branches_at_the_same_time_and_one_joins(hub: Hub, git: Git) -> None:
    clones = [hub.clone() for _ in range(3)]
    first = clones[0]
    thread = first.begun(FILES)
    first.step(thread, lambda _turn: replied(lists(6)))
    assert first.step(thread, plays).status == "split"
    children = Split(first, thread).children
    push_all(first)
    for each in clones[1:]:
        fetch_all(each)

    def work(number: int) -> list[str]:
        world = clones[number]
        for child in children[number::3]:
            # Nobody has begun it: each clone begins its own.
            for _ in range(3):
                world.step(child, plays, command="mine", workdir=str(world.place))
        world.reopen()
        failure = push_remote(world.store, world.caller, "hub", children[number::3]).failure()
        return [] if failure is None else [failure.message]

    assert at_once(3, work) == [[], [], []]

    for each in clones:
        fetch_all(each)
    last = clones[2]
    assert last.step(thread, plays).status == "ready"
    assert last.snapshot(thread).get_present().state["reports"] == [{"writer_done": True}] * 6
    push_all(last)
    for each in clones:
        fetch_all(each)
    finish(first, thread)
    push_all(first)
    assert git("fsck", "--strict", "--no-dangling", cwd=hub.path) == ""
    refs = hub.refs()
    assert set(refs) >= {f"refs/archive/{each}" for each in (thread, *children)}
    for each in clones:
        fetch_all(each)
        assert verify(each.store, []).troubles == ()
        assert {name: str(each.store.refs.find(name)) for name in refs} == refs
