"""Branches and the threads that they belong to."""

from commands.inspect.test_branches import split_of
from commands.inspect.test_context_of_flows import NESTED, branch_of
from commands.step.test_flows import CHECKS, LOOP, drive, script
from commands.world import World

from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.commands.split.family import (
    Family,
    count_steps_before,
    list_branches,
    list_present_descendants,
    name_branch,
)
from uwf_git.model.thread_id import ThreadId


def nested(world: World) -> ThreadId:
    """Begin a thread whose two branches have two branches each."""
    thread = split_of(world, NESTED)
    for _ in range(3):
        world.step(thread, script())
    return thread


def test_branches_are_found_from_above_and_from_below(world: World) -> None:
    thread = nested(world)
    first = branch_of(world, thread, 0)
    inner = branch_of(world, first, 1)

    assert [each.child.thread for each in list_branches(world.store, world.snapshot(thread))] == [
        first,
        branch_of(world, thread, 1),
    ]
    assert world.snapshot(inner).get_trunk() == first
    assert world.snapshot(thread).get_trunk() is None
    below = list(list_present_descendants(world.store, thread))
    assert len(below) == 6
    assert below[0] == first
    assert below.index(inner) < below.index(branch_of(world, thread, 1))


def test_family_has_branches_at_every_depth_and_nobody_else(world: World) -> None:
    thread = nested(world)
    other = world.begun(LOOP)
    family = Family(world.store, thread)

    assert thread in family
    assert all(each in family for each in list_present_descendants(world.store, thread))
    assert other not in family
    assert thread not in Family(world.store, branch_of(world, thread, 0))


def test_family_has_a_branch_that_came_before_the_thread_around_it(world: World) -> None:
    thread = nested(world)
    first = branch_of(world, thread, 0)
    inner = branch_of(world, first, 1)
    family, stranger = Family(world.store, thread), Family(world.store, world.begun(LOOP))
    tip = world.snapshot(first).commit.oid
    assert world.store.refs.delete(f"refs/threads/{first}", seen=tip)

    assert first not in family
    assert inner in family
    assert inner not in stranger
    assert world.store.refs.create(f"refs/threads/{first}", tip)
    assert first in family
    assert first not in stranger


def test_family_keeps_branches_that_were_joined(world: World) -> None:
    thread = split_of(world)
    branch = branch_of(world, thread, 0)

    drive(world, thread, script())

    assert branch in Family(world.store, thread)
    assert list(list_present_descendants(world.store, thread)) == []


def test_thread_that_an_agent_began_is_no_branch(world: World) -> None:
    thread = world.begun(CHECKS)
    request = StartRequest("checks", "x", ("nobody",), parent=thread)
    child = start_thread(world.store, world.caller, request, thread=world.new_id()).thread

    assert world.snapshot(child).get_trunk() is None
    assert child not in Family(world.store, thread)
    assert name_branch(world.store, child) == ""


def test_branch_is_named_by_its_numbers_and_its_node(world: World) -> None:
    thread = nested(world)
    second = branch_of(world, thread, 1)

    assert name_branch(world.store, thread) == ""
    assert name_branch(world.store, second) == "1 each"
    assert name_branch(world.store, branch_of(world, second, 0)) == "1.0 one"


def test_steps_before_a_branch_are_counted_from_the_inside(world: World) -> None:
    thread = nested(world)
    inner = branch_of(world, branch_of(world, thread, 0), 0)
    before = world.snapshot(inner)

    assert count_steps_before(world.store, before) == (1, 2)
    assert count_steps_before(world.store, world.snapshot(thread)) == ()
    drive(world, thread, script(one={"a": 1}, other={"b": 1}))
    # Its parents have gone on: the commits behind it tell.
    assert count_steps_before(world.store, before) == (1, 2)
    assert count_steps_before(world.store, world.snapshot(inner)) == (1, 2)


def test_fork_of_a_branch_has_the_steps_before_it_and_no_parent(world: World) -> None:
    thread = split_of(world)
    world.step(thread, script())
    branch = branch_of(world, thread, 1)
    fork = fork_thread(world.store, world.caller, ForkRequest(branch), thread=world.new_id()).thread

    assert world.snapshot(fork).get_trunk() is None
    assert count_steps_before(world.store, world.snapshot(fork)) == (1,)
