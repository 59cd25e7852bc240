"""Branches are held while a thread above them does not let them go on."""

import json
import shlex
from typing import Any

import pytest
from commands.flows import CHECKS, Split, plays
from commands.turns import branches, script
from commands.world import World, content_player
from refusing import refuses

from uwf_git.commands.family import BranchHeld, check_ancestors
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.branches import ThreadNotReady, begin_branch
from uwf_git.commands.turn.next_move import find_join_problem
from uwf_git.engine.flow_state import MAX_STATE_BYTES
from uwf_git.errors import Refused, UwfError
from uwf_git.model.event_folds import Words
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Event, Status, Waiting
from uwf_git.store.threads.heads import BranchNotBegun
from uwf_git.store.threads.history import NewCommit, record_next
from uwf_git.store.threads.naming import resolve_thread


@pytest.mark.parametrize(
    ("event", "status", "changes", "words"),
    [
        ("pause", "paused", {"paused_from": "ready"}, ("is paused", "uwf thread resume")),
        ("attempt", "failed", {"failures": 1}, ("has failed$", "uwf thread retry")),
        ("attempt", "failed", {"failures": 2}, ("has failed, after 2 failed attempts$", "retry")),
        (
            "wait",
            "waiting",
            {"waiting": Waiting("writer")},
            ("waits for a person", "thread answer"),
        ),
        (
            "attempt",
            "waiting",
            {"waiting": Waiting("writer", 4_000_000_000_000)},
            ("waits until 2096-10-02", "--wait"),
        ),
        # Only a forged one: a thread that waits says for what.
        ("attempt", "waiting", {}, ("is waiting, not ready$", "uwf thread")),
    ],
)
def test_thread_that_is_not_ready_is_not_driven_and_says_what_to_type(
    world: World,
    event: Event,
    status: Status,
    changes: dict[str, Any],
    words: tuple[str, str],
    thread: ThreadId,
) -> None:
    told, hint = words
    snapshot = world.snapshot(thread)
    moved = NewCommit(
        record=snapshot.record._replace(event=event, status=status),
        words=Words("a moment"),
        present=snapshot.get_present()._replace(**changes),
    )
    commit = record_next(world.store, snapshot, moved, world.caller.signing(world.store))
    assert world.store.refs.advance(f"refs/threads/{thread}", seen=snapshot.commit.oid, to=commit)

    with pytest.raises(ThreadNotReady, match=f"thread {thread} {told}") as caught:
        step_thread(world.store, world.caller, StepRequest(thread, content_player, is_driven=True))
    assert caught.value.exit_status == 1
    assert hint in (caught.value.hint or "")
    assert caught.value.facts["status"] == status


def test_a_branch_that_was_joined_goes_on_no_more(split: Split) -> None:
    world, first = split.world, split.children[0]
    begun = world.snapshot(first)
    split.finish_branches()
    split.step()

    with pytest.raises(BranchHeld, match="goes on without it"):
        check_ancestors(world.store, begun)


# Branches begin once, by whoever first steps or steers one.


@pytest.fixture
def new(world: World) -> Split:
    """Return a thread that has split in two; nobody has begun its branches."""
    thread = world.begun(CHECKS)
    while world.step(thread, plays).status != "split":
        pass
    return Split(world, thread)


def test_a_branch_is_begun_once(split: Split) -> None:
    store, first = split.world.store, split.children[0]
    before = split.world.tip(first)
    split.world.step(first, plays)

    assert begin_branch(store, split.tip, 0) == first

    assert split.world.snapshot(first).commit.parents == (before,)
    assert split.world.snapshot(first).get_trunk() == split.thread
    assert split.tip.get_trunk() is None


# By its id.


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


# Why branches cannot end or be joined, before anybody tries.


PAIR = """\
name: pair
root:
  type: sequential
  nodes:
    - {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
    - {type: agent, agentId: closer}
"""
INNER = "name: inner\nroot: {type: agent, agentId: digger}\n"
GRAPH = """\
name: outer
roles:
  builder: {workflow: inner, outputSchema: {type: object, required: [good]}}
moderator:
  - {from: $START, to: builder}
  - {from: builder, to: $END}
"""


def problem_of(world: World, thread: ThreadId) -> UwfError | None:
    return find_join_problem(world.store, world.snapshot(thread))


def test_a_result_that_does_not_fit_is_a_problem_before_the_branch_ends(world: World) -> None:
    world.put(INNER)
    thread = world.stepped(source=GRAPH)
    (inner,) = branches(world, thread)
    assert problem_of(world, thread) is None

    world.step(inner, script(digger={"bad": 1}))

    problem = problem_of(world, thread)
    assert isinstance(problem, Refused)
    assert f"`uwf thread poke {inner}" in (problem.hint or "")

    world.kill(inner)
    problem = problem_of(world, thread)
    assert f"`uwf thread fork {thread}`" in ("" if problem is None else problem.hint or "")


def test_branches_that_say_too_much_together_are_joined_and_a_patch_lets_the_thread_go_on(
    world: World,
) -> None:
    thread = world.stepped(source=PAIR)
    much = "x" * (MAX_STATE_BYTES // 4)
    for branch in branches(world, thread):
        world.step(branch, script(one={"a": much}, two={"b": much}))
        world.step(branch)
    assert (world.step(thread).said or "").endswith(": 2 completed")

    with refuses("state-too-large", match="1,048,576") as refused:
        world.step(thread)

    *words, patch = shlex.split((refused.value.hint or "").split("`")[1])
    assert words == ["uwf", "thread", "patch", thread]
    world.patch(thread, json.loads(patch))
    assert world.step(thread).role == "closer"
    world.assert_whole()
