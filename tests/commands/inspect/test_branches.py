"""A split thread as people look at it: in lists, and by itself."""

from typing import Any

import pytest
from commands.inspect.test_context_of_flows import NESTED, branch_of
from commands.step.test_flows import CHECKS, drive, script
from commands.world import World, fails, replied
from refusing import refuses
from store.loose import lose

from uwf_git.commands.control.steer import pause_thread
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.show import read_stop, show_thread
from uwf_git.commands.turn.next_move import NextMove, advise
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId


def split_of(world: World, source: str = CHECKS) -> ThreadId:
    """Begin a thread, and step it until it has split."""
    thread = world.begun(source)
    while world.snapshot(thread).record.status != "split":
        world.step(thread, script())
    return thread


def fail_reviewer(turn: Turn) -> Played:
    return fails("no luck")(turn) if turn.role == "reviewer" else replied({})


def listed(world: World, **asked: Any) -> list[tuple[str, str]]:
    rows = list_thread_rows(world.store, ListRequest(**asked))
    return [(row["thread"], row["status"]) for row in rows]


def test_list_has_roots_with_their_branches_counted(world: World) -> None:
    thread = split_of(world)
    assert listed(world) == [(thread, "split")]
    world.step(thread, fail_reviewer)

    (row,) = list_thread_rows(world.store, ListRequest())

    assert row["branches"] == {"failed": 1, "ready": 1}
    assert "branchOf" not in row


def test_list_has_branches_where_they_are_asked_for(world: World) -> None:
    thread = split_of(world)
    world.step(thread, fail_reviewer)
    failed, ready = branch_of(world, thread, 0), branch_of(world, thread, 1)

    assert listed(world, statuses=frozenset({"failed"})) == [(failed, "failed")]
    assert listed(world, parent=thread) == [(ready, "ready"), (failed, "failed")]
    assert listed(world, branches=True) == [
        (ready, "ready"),
        (failed, "failed"),
        (thread, "split"),
    ]


def test_list_has_a_branch_whose_parent_is_elsewhere(world: World) -> None:
    thread = split_of(world)
    world.step(thread, script())
    branch = branch_of(world, thread, 1)
    tip = world.snapshot(thread).commit.oid
    assert world.store.refs.delete(f"refs/threads/{thread}", seen=tip)

    assert (branch, "ready") in listed(world)


def test_show_has_what_each_branch_does(world: World) -> None:
    thread = split_of(world)

    begun = show_thread(world.store, thread)
    assert [row["status"] for row in begun["branches"]] == ["ready", "ready"]
    assert (begun["currentNode"], begun["currentIteration"]) == ("checks", 1)
    world.step(thread, fail_reviewer)

    document = show_thread(world.store, thread)
    first, second = document["branches"]
    assert (first["number"], first["label"], first["status"]) == (0, "reviewer", "failed")
    assert (first["error"], first["thread"]) == ("no luck", branch_of(world, thread, 0))
    assert (second["label"], second["status"], second["depth"]) == ("testing", "ready", 1)
    assert document["heldBy"] == [
        {"thread": first["thread"], "label": "reviewer", "status": "failed", "error": "no luck"}
    ]


@pytest.mark.parametrize("config", ["", "config: {maxSteps: 9}\n"])
def test_a_branch_that_cannot_be_read_is_shown_with_the_others(world: World, config: str) -> None:
    thread = split_of(world, CHECKS + config)
    world.step(thread, script())
    broken, other = branch_of(world, thread, 0), branch_of(world, thread, 1)
    lose(world.store, world.snapshot(broken).commit.oid)
    world.reopen()

    shown = show_thread(world.store, thread)

    assert [row["status"] for row in shown["branches"]] == ["damaged", "ready"]
    assert [(held["thread"], held["status"]) for held in shown["heldBy"]] == [(broken, "damaged")]
    told = read_stop(world.store, thread).advice
    assert not told.is_usual
    assert "is missing" in told.text
    assert "heldBy" not in show_thread(world.store, other)
    # With a limit, no step begins before it is known what the others spent.
    assert ("is missing" in read_stop(world.store, other).advice.text) == bool(config)


def test_show_of_a_branch_says_where_it_belongs(world: World) -> None:
    thread = split_of(world)
    world.step(thread, script())
    pause_thread(world.store, world.caller, thread)

    document = show_thread(world.store, branch_of(world, thread, 1))

    assert (document["branchOf"], document["parentThread"]) == (thread, thread)
    assert document["heldBy"] == [{"thread": thread, "status": "paused"}]
    assert (document["currentNode"], document["lastNode"]) == ("tester", "builder")


def test_branches_of_branches_are_shown_and_counted_in_their_place(world: World) -> None:
    thread = split_of(world, NESTED)
    world.step(thread, script())
    world.step(thread, script())

    outer = show_thread(world.store, thread)["branches"]
    (row,) = list_thread_rows(world.store, ListRequest())

    assert [[each["label"] for each in branch["branches"]] for branch in outer] == [
        ["one", "other"],
        ["one", "other"],
    ]
    assert row["branches"] == {"ready": 4}


def test_what_holds_a_branch_of_branches_is_told_of_the_thread(world: World) -> None:
    thread = split_of(world, NESTED)
    play = script(one={"v": 1}, other={"v": 2})
    for _ in range(4):
        world.step(thread, play)
    first, second = (branch_of(world, thread, number) for number in range(2))
    pause_thread(world.store, world.caller, second)

    held = show_thread(world.store, thread)["heldBy"]
    told = advise(world.store, world.snapshot(thread), NextMove())

    assert [(each["thread"], each["status"]) for each in held] == [
        (second, "paused"),
        (first, "split"),
    ]
    assert f"`uwf thread patch {first} '{{\"v\": 1}}'` settles it" in told.text


def test_a_limit_holds_a_thread_and_its_branches_up(world: World) -> None:
    thread = split_of(world, CHECKS + "config: {maxSteps: 3}\n")
    before = show_thread(world.store, thread)
    assert (before["limitsUsed"], "heldBy" in before) == ({"maxSteps": 1}, False)
    world.step(thread, script())

    document = show_thread(world.store, thread)

    (held,) = document["heldBy"]
    assert (held["thread"], held["status"]) == (thread, "limit")
    assert "3 of 3 steps are taken" in held["error"]
    assert f"`uwf thread amend {thread} --max-steps N`" in held["hint"]
    assert document["limitsUsed"] == {"maxSteps": 3}
    branch = show_thread(world.store, branch_of(world, thread, 1))
    assert branch["heldBy"] == [held]
    assert "limitsUsed" not in branch


def test_branches_of_a_branch_that_cannot_be_joined_hold_all_up(world: World) -> None:
    thread = split_of(world, NESTED)
    with refuses("merge-conflict"):
        drive(world, thread, lambda turn: replied({"verdict": turn.role}))

    held = show_thread(world.store, thread)["heldBy"]

    assert [each["thread"] for each in held] == [
        branch_of(world, thread, 0), branch_of(world, thread, 1),
    ]  # fmt: skip
    assert all(f"`uwf thread patch {each['thread']} " in each["hint"] for each in held)
