"""Events of flows: passes, branches, and what a listener of the parent alone gets."""

from collections import Counter
from typing import Any

import pytest
from commands.flow_runs import script
from commands.inspect.test_branches import fail_reviewer, split_of
from commands.inspect.test_context import NESTED, branch_of
from commands.step.test_record_turn import CHECKS, drive
from commands.turns import begin_turn
from commands.world import World
from store.loose import lose

from uwf_git.commands.commit_events import EventOptions
from uwf_git.commands.journal import (
    EventsRequest,
    EventStream,
    NoSuchEvent,
    find_thread,
    find_turn_end,
    list_new,
)
from uwf_git.engine.events import EventId, parse_event_id
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import Oid, ThreadId

LOOPS = """\
name: loops
description: A loop in a loop, and branches in it.
initialState: {n: 0}
config: {stateSnapshot: true}
root:
  type: loop
  name: outer
  maxIterations: 2
  nodes:
    - type: loop
      name: inner
      maxIterations: 2
      nodes:
        - {type: agent, agentId: coder}
    - type: parallel
      name: both
      nodes:
        - type: loop
          name: own
          maxIterations: 2
          nodes: [{type: agent, agentId: one}]
        - {type: agent, agentId: other}
"""


def follow(world: World, thread: ThreadId, **asked: Any) -> EventStream:
    def refuse(damage: Exception) -> None:
        raise damage

    return EventStream(world.store, EventsRequest(thread, **asked), EventOptions(), refuse)


def told(event: dict[str, Any]) -> tuple[str, Any, Any]:
    return event["type"], event["payload"].get("nodeId"), event["payload"].get("iteration")


def containers(events: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    kinds = {"loop:iteration", "parallel:start", "parallel:complete", "node:enter"}
    return [told(event) for event in events if event["type"] in kinds]


def test_loops_in_loops_and_in_branches_each_tell_their_passes(world: World) -> None:
    thread = world.begun(LOOPS)
    drive(world, thread, script(one={"a": 1}, other={"b": 1}))

    events = list(follow(world, thread).read())

    own = [event for event in events if event["taskId"] == thread]
    assert containers(own) == [
        ("loop:iteration", "outer", 1),
        ("loop:iteration", "inner", 1),
        ("node:enter", "coder", 1),
        ("loop:iteration", "inner", 2),
        ("node:enter", "coder", 2),
        ("parallel:start", "both", 1),
        ("parallel:complete", "both", 1),
        ("loop:iteration", "outer", 2),
        ("loop:iteration", "inner", 1),
        ("node:enter", "coder", 1),
        ("loop:iteration", "inner", 2),
        ("node:enter", "coder", 2),
        ("parallel:start", "both", 2),
        ("parallel:complete", "both", 2),
    ]
    inside = Counter(containers([event for event in events if event["taskId"] != thread]))
    assert inside == {
        ("loop:iteration", "own", 1): 2,
        ("loop:iteration", "own", 2): 2,
        ("node:enter", "one", 1): 2,
        ("node:enter", "one", 2): 2,
        ("node:enter", "other", 1): 1,
        ("node:enter", "other", 2): 1,
    }
    exits = [event for event in events if event["type"] == "node:exit"]
    assert all(event["payload"]["state"]["n"] == 0 for event in exits)


def test_pass_that_begins_with_a_split_is_told_with_it(world: World) -> None:
    source = NESTED.replace(
        "type: sequential\n  nodes:", "type: loop\n  maxIterations: 1\n  nodes:"
    )
    source = source.replace("    - {type: agent, agentId: planner}\n", "")
    thread = split_of(world, source.replace("    - {type: agent, agentId: coder}\n", ""))

    events = list(follow(world, thread).read())

    assert containers(events) == [("loop:iteration", "loop", 1), ("parallel:start", "each", 1)]


def test_a_flow_that_emits_no_progress_tells_all_else(world: World) -> None:
    """In a branch too, whose start and end are progress of the thread."""
    told = []
    for switch in ("true", "false"):
        thread = world.begun(f"config: {{eventEmit: {switch}}}\n{CHECKS}")
        drive(world, thread, script())
        told.append(Counter(event["type"] for event in follow(world, thread).read()))

    loud, quiet = told
    assert loud.pop("workflow:progress") > 0
    assert quiet == loud


def test_since_each_event_yields_the_rest(world: World) -> None:
    thread = world.begun(LOOPS)
    live = follow(world, thread)
    ids = [event["id"] for event in live.read()]
    while world.snapshot(thread).record.status != "completed":
        world.step(thread, script(one={"a": 1}, other={"b": 1}))
        ids += [event["id"] for event in live.read()]

    for place, since in enumerate(ids):
        rest = follow(world, thread, since=parse_event_id(since)).read()
        assert [event["id"] for event in rest] == ids[place + 1 :], since


def test_since_a_pass_yields_the_turn_that_began_with_it(world: World) -> None:
    thread = world.begun(LOOPS)
    base = begin_turn(world, thread, role="coder")
    run = world.store.local_path("run", thread, f"{base}.turn")
    with open(run, "a", encoding="utf-8") as file:
        file.write("0.1/0.1/0\n")
    live = follow(world, thread)
    begun = [event["id"] for event in live.read()][-3:]
    assert begun == [f"{base}-enter1", f"{base}-enter2", f"{base}-enter"]

    rest = follow(world, thread, since=parse_event_id(begun[0])).read()

    assert [event["id"] for event in rest] == begun[1:]


def test_killed_parent_is_followed_until_its_branches_have_ended(world: World) -> None:
    thread = split_of(world)
    world.step(thread, fail_reviewer)
    live = follow(world, thread)
    list(live.read())

    world.kill(thread)
    events = list(live.read())

    assert next(told(each)[0] for each in events if each["taskId"] == thread) == "workflow:error"
    inside = [each for each in events if each["taskId"] != thread]
    assert {each["type"] for each in inside} <= {"workflow:progress"}


def test_listener_of_the_parent_hears_of_a_branch_that_cannot_be_read(world: World) -> None:
    thread = split_of(world)
    world.step(thread, fail_reviewer)
    lose(world.store, world.tip(branch_of(world, thread, 1)))
    world.reopen()
    troubles: list[StoreDamaged] = []
    stream = EventStream(world.store, EventsRequest(thread), EventOptions(), troubles.append)

    assert {event["taskId"] for event in stream.read()} == {thread, branch_of(world, thread, 0)}
    assert [each.code for each in troubles] == ["damaged-commit"]


A, B = ThreadId("01J00000000000000000000001"), ThreadId("01J00000000000000000000002")


def test_thread_that_went_another_way_has_only_that_way_new(world: World) -> None:
    thread = world.begun()
    start = world.tip(thread)
    world.step(thread)
    here = world.tip(thread)
    world.store.refs.advance(f"refs/threads/{thread}", seen=here, to=start)
    world.patch(thread, {"a": 1})
    there = world.tip(thread)

    assert [each.commit for each in list_new(world.store, thread, there, known=here)] == [there]
    lost = Oid("0" * 40)
    assert [each.commit for each in list_new(world.store, thread, there, known=lost)] == [
        start,
        there,
    ]


def test_turn_ends_where_it_is_recorded(world: World) -> None:
    thread = world.begun()
    base = world.tip(thread)
    heads = {thread: base}
    assert find_turn_end(world.store, base, heads) is None
    world.patch(thread, {"a": 1})
    patched = world.tip(thread)
    world.step(thread)
    heads = {thread: world.tip(thread)}

    assert find_turn_end(world.store, base, heads) == EventId(heads[thread], "enter")
    # No turn began there: the next one had begun before.
    assert find_turn_end(world.store, patched, heads) is None


def test_commit_of_no_thread_is_no_event(world: World) -> None:
    workflow = world.put()
    other = world.store.refs.find(f"refs/workflows/{workflow.name}")
    assert other is not None

    for commit in (other, Oid("0" * 40)):
        with pytest.raises(NoSuchEvent, match="there is no event"):
            find_thread(world.store, EventId(commit))
    thread = world.start()
    with pytest.raises(NoSuchEvent, match="-enter in this store"):
        find_turn_end(world.store, world.tip(thread), {})
