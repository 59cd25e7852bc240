"""Branches begin once, by whoever first steps or steers one."""

import pytest
from commands.flows import CHECKS, Split, assert_sound, finish, plays, split_checks
from commands.world import World
from refusing import refuses

from uwf_git.commands.control.steer import pause_thread
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.turn.branches import BranchHeld, begin_branch, share_workdir
from uwf_git.store.threads.heads import BranchNotBegun, resolve_thread
from uwf_git.store.threads.local_files import find_workdir, set_workdir


@pytest.fixture
def split(world: World) -> Split:
    """Return a thread that has split in two; its branches have begun."""
    return split_checks(world)


@pytest.fixture
def new(world: World) -> Split:
    """Return a thread that has split in two; nobody has begun its branches."""
    thread = world.begun(CHECKS)
    while world.step(thread, plays).status != "split":
        pass
    return Split(world, thread)


def test_a_branch_is_begun_once(split: Split) -> None:
    store, first = split.world.store, split.children[0]
    before = split.world.snapshot(first).commit.oid
    split.world.step(first, plays)

    assert begin_branch(store, split.tip, 0) == first

    assert split.world.snapshot(first).commit.parents == (before,)
    assert split.world.snapshot(first).get_trunk() == split.thread
    assert split.tip.get_trunk() is None


def test_a_branch_works_where_its_thread_does_unless_it_has_its_own_place(split: Split) -> None:
    store, (first, second) = split.world.store, split.children
    place = str(split.world.place)
    set_workdir(store, split.thread, place)
    set_workdir(store, first, "/")

    for child in (first, second):
        share_workdir(store, split.thread, child)

    assert (find_workdir(store, first), find_workdir(store, second)) == ("/", place)


# By its id.


def test_a_branch_begins_when_it_is_stepped_and_no_other_does(new: Split) -> None:
    world, (first, second) = new.world, new.children

    stepped = world.step(second, plays)

    assert (stepped.role, stepped.status) == ("tester", "ready")
    assert world.store.refs.find(f"refs/threads/{first}") is None
    assert find_workdir(world.store, second) == find_workdir(world.store, new.thread)
    finish(world, second)
    finish(world, new.thread)
    assert_sound(world, new.thread)


def test_a_paused_thread_has_its_branches(new: Split) -> None:
    pause_thread(new.world.store, new.world.caller, new.thread)

    with pytest.raises(BranchHeld, match="is paused"):
        new.world.step(new.children[0], plays)


def test_the_beginning_of_an_id_is_enough_where_one_branch_has_it(new: Split) -> None:
    first, second = new.children
    shared = next(n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)

    with refuses("ambiguous-thread", match="2 threads begin with"):
        new.world.step(first[:shared], plays)
    assert new.world.step(second[: shared + 1], plays).thread == second


def test_looking_begins_nothing_and_says_what_does(new: Split) -> None:
    store, first = new.world.store, new.children[0]

    with pytest.raises(BranchNotBegun) as told:
        show_thread(store, first)

    assert told.value.message == f"branch {first} of thread {new.thread} has not begun here"
    assert told.value.hint == f"`uwf thread step {first}` takes its first step"
    with pytest.raises(BranchNotBegun):
        resolve_thread(store, first)
    assert store.refs.find(f"refs/threads/{first}") is None
