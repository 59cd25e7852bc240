"""Threads that have split, as text, in full, and searched."""

import re
from typing import Any

from commands.flow_runs import script
from commands.inspect.test_context import NESTED
from commands.step.test_played_roles import begun as begin_nested
from commands.step.test_record_turn import CHECKS, drive
from commands.world import World

from uwf_git.commands.inspect.read import SearchRequest, render_thread, search_threads
from uwf_git.commands.inspect.show import show_thread
from uwf_git.model.names import ThreadId

ANSWERS = {
    "coder": "x = 1",
    "reviewer": "fine",
    "builder": "built",
    "tester": "passed",
    "closer": "bye",
}


def headings(world: World, thread: ThreadId) -> list[str]:
    text = "".join(render_thread(world.store, thread))
    return [line[3:] for line in text.splitlines() if line.startswith("## ")]


def test_read_tells_branches_between_their_split_and_their_join(world: World) -> None:
    thread = world.begun(CHECKS)
    drive(world, thread, script(**ANSWERS))

    assert headings(world, thread) == [
        "1. coder: x = 1",
        "Split: checks into 2",
        "Branch 0 reviewer, 1. reviewer: fine",
        "Branch 1 testing, 1. builder: built",
        "Branch 1 testing, 2. tester: passed",
        "2. checks: 2 completed",
        "3. closer: bye",
        "Completed after 3 steps",
    ]
    assert headings(world, branch_of_ended(world, thread, 1)) == [
        "1. builder: built",
        "2. tester: passed",
        "Completed after 2 steps",
    ]


def branch_of_ended(world: World, thread: ThreadId, number: int) -> ThreadId:
    row = show_thread(world.store, thread, full=True)["steps"][1]["branches"][number]
    found: ThreadId = row["thread"]
    return found


def found(world: World, pattern: str) -> list[tuple[Any, Any]]:
    rows = search_threads(world.store, SearchRequest(re.compile(pattern)))
    return sorted((row["role"] or "", row["field"]) for row in rows)


def test_search_tells_a_step_once_and_a_prompt_once(world: World) -> None:
    thread = world.begun(CHECKS)
    drive(world, thread, script(**ANSWERS))

    assert found(world, "Do it") == [("", "prompt")]
    assert found(world, "fine|passed") == [("reviewer", "content"), ("tester", "content")]
    assert found(world, "x = 1") == [("coder", "content")]


def test_search_tells_the_prompt_of_a_workflow_in_a_workflow_if_it_is_its_own(
    world: World,
) -> None:
    thread = begin_nested(world)
    drive(world, thread, script(planner="deep", digger={"depth": 2}, closer={"good": True}))

    assert found(world, "Do it") == [("", "prompt")]
    assert found(world, "dig deep") == [("", "prompt")]
    rows = search_threads(world.store, SearchRequest(re.compile("Do it"), workflow="middle"))
    assert [row["field"] for row in rows] == ["prompt"]


def test_a_fork_tells_the_branches_of_a_thread_that_was_removed(world: World) -> None:
    thread = world.begun(NESTED)
    drive(world, thread, script(reader="read", one="deep inside", other={"b": 1}))
    before = headings(world, thread)
    fork = world.fork(thread)
    assert found(world, "deep inside") == [("one", "content")] * 2

    world.remove(thread)
    world.reopen()

    assert [each for each in before if each.startswith("Branch")] == [
        each for each in headings(world, fork) if each.startswith("Branch")
    ]
    assert found(world, "deep inside") == [("one", "content")] * 2
    rows = search_threads(world.store, SearchRequest(re.compile("deep inside")))
    assert {(row["thread"], row["step"]) for row in rows} == {(fork, 3)}
