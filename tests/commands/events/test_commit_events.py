import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.inspect.test_context import NESTED, branch_of
from commands.inspect.test_show import fail_reviewer, split_of
from commands.step.test_record_turn import CHECKS, drive
from commands.turns import begin_turn, script
from commands.world import DEMO, World, fails, says
from store.small_packs import lose

from uwf_git.commands.commit_events import EventOptions, EventReader, announce_events
from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.journal import (
    EventsRequest,
    EventStream,
    find_turn_end,
    list_new,
)
from uwf_git.engine.events import EventId, parse_event_id
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.trust import describe_command, trust_agents

PLAIN = EventOptions()


def told(world: World, thread: ThreadId, options: EventOptions = PLAIN) -> list[dict[str, Any]]:
    """Return the events of the newest transition."""
    return EventReader(world.store, options).read(world.tip(thread))


def test_each_transition_has_its_events(world: World, golden: Callable[[str, str], None]) -> None:
    thread = world.begun(DEMO, "nobody", "checker=human")
    world.fail(thread, fails(exit_code=7))
    world.retry(thread, hint="once more")
    world.step(thread, says({"text": "x", "password": "long" * 99}, content=""))
    world.pause(thread, reason="lunch")
    world.resume(thread)
    world.patch(thread, {"budget": 3, "a": None})
    world.step(thread)
    world.answer(thread, PersonAnswer({"ok": True}))
    world.step(thread)

    events = list(follow(world, thread).read())

    golden("commands/events.jsonl", "".join(f"{json.dumps(event)}\n" for event in events))


def test_turn_that_was_steered_meanwhile_entered_where_it_began(
    world: World, thread: ThreadId
) -> None:
    base = world.tip(thread)
    world.patch(thread, {"n": 1})
    world.step(thread, says({"text": "x"}))

    assert told(world, thread)[0]["id"] == f"{base}-enter"


def test_state_is_included_only_on_request(world: World, thread: ThreadId) -> None:
    world.patch(thread, {"key": "AKIA" + "A1B2" * 4})

    (asked,) = told(world, thread, EventOptions(with_state=True))

    assert asked["payload"]["state"] == {"key": "[masked]"}
    assert "state" not in told(world, thread)[0]["payload"]


Heard = Callable[[], list[dict[str, Any]]]


def listen(world: World, command: str) -> None:
    set_config(os.path.join(world.store.path, "config"), "uwf.onEvent", command)
    trust_agents(world.store, [describe_command("uwf.onEvent", command)], world.store.path)
    world.reopen()


@pytest.fixture
def heard(world: World) -> Heard:
    """Set a listener, and return a function that returns what it got."""
    listener = world.program('cat >>"$0.heard"', name="listener")
    listen(world, listener)
    path = Path(f"{listener}.heard")

    def read() -> list[dict[str, Any]]:
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    return read


def announce(world: World, **more: Any) -> str | None:
    return announce_events(world.store, world.caller.environ, **more)


def test_each_event_is_announced_once_and_in_order(world: World, heard: Heard) -> None:
    thread = world.stepped()

    assert announce(world) is None

    told = heard()
    assert [event["type"] for event in told] == [
        "workflow:start",
        "node:enter",
        "node:exit",
        "workflow:progress",
    ]
    assert {event["taskId"] for event in told} == {thread}
    assert announce(world) is None
    assert heard() == []


def test_transitions_of_other_processes_are_not_announced(world: World, heard: Heard) -> None:
    thread = world.begun()
    announce(world)
    heard()
    mine = world.store
    world.reopen()
    world.step(thread)

    assert announce_events(mine, os.environ) is None
    assert heard() == []


def test_key_is_masked(world: World, heard: Heard, thread: ThreadId) -> None:
    environ = {**world.caller.environ, "MY_TOKEN": "Tr0ub4dor"}
    world.pause(thread, reason="sk-" + "x1" * 10 + " Tr0ub4dor")

    assert announce_events(world.store, environ) is None
    assert heard()[-1]["reason"] == "[masked] [masked]"


def test_listener_is_tied_to_no_repository_around_uwf(world: World) -> None:
    listen(world, world.program('[ -z "$GIT_DIR" ]'))
    world.begun()
    assert announce_events(world.store, {**world.caller.environ, "GIT_DIR": "/x"}) is None


@pytest.mark.parametrize("command", ["/nowhere/listener", "'unclosed"])
def test_listener_that_cannot_be_run_is_one_line(world: World, command: str) -> None:
    listen(world, command)
    world.step(world.begun())

    problem = announce(world) or ""

    assert problem.startswith("uwf.onEvent: ")
    assert "\n" not in problem


def test_listener_that_hangs_is_ended_and_not_asked_again(world: World) -> None:
    listen(world, world.program('echo x >>"$0.heard"; sleep 60; :'))
    world.step(world.begun())

    problem = announce(world, timeout_s=0.3) or ""

    assert problem.endswith("was killed after 0.3 s; 3 more events were not announced")
    assert (world.place / "agent.heard").read_text() == "x\n"


def test_listener_that_git_config_set_in_the_store_waits_for_the_user(world: World) -> None:
    listener = world.program('cat >>"$0.heard"', name="listener")
    heard = Path(f"{listener}.heard")
    world.configure("uwf.onEvent", listener)
    world.begun()

    problem = announce(world)

    assert problem is not None
    assert f"this store's config names a command that is not trusted: {listener};" in problem
    assert not heard.exists()
    # An agent of the same words is no listener.
    trust_agents(world.store, [{"command": listener}], world.store.path)
    world.start()
    assert announce(world) is not None
    listen(world, listener)
    world.start()
    assert announce(world) is None
    assert heard.exists()


def test_listener_of_the_user_s_own_git_config_runs(world: World, git: Callable[..., str]) -> None:
    listener = world.program('cat >>"$0.heard"', name="listener")
    git("config", "--global", "uwf.onEvent", listener, cwd=world.place)
    world.reopen()
    world.begun()

    assert announce(world) is None
    assert Path(f"{listener}.heard").exists()


# Events of flows: passes, branches, and what a listener of the parent alone gets.

LOOPS = """\
name: loops
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


def told_flows(event: dict[str, Any]) -> tuple[str, Any, Any]:
    return event["type"], event["payload"].get("nodeId"), event["payload"].get("iteration")


def containers(events: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    kinds = {"loop:iteration", "parallel:start", "parallel:complete", "node:enter"}
    return [told_flows(event) for event in events if event["type"] in kinds]


def test_loops_in_loops_and_in_branches_each_tell_their_passes(
    world: World, golden: Callable[[str, str], None]
) -> None:
    thread = world.begun(LOOPS)
    drive(world, thread, script(one={"a": 1}, other={"b": 1}))

    events = list(follow(world, thread).read())

    mine = containers([event for event in events if event["taskId"] == thread])
    inside = sorted(containers([event for event in events if event["taskId"] != thread]))
    golden("commands/passes.txt", "".join(f"{each}\n" for each in [*mine, "", *inside]))
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
    told_flows = []
    for switch in ("true", "false"):
        thread = world.begun(f"config: {{eventEmit: {switch}}}\n{CHECKS}")
        drive(world, thread, script())
        told_flows.append(Counter(event["type"] for event in follow(world, thread).read()))

    loud, quiet = told_flows
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
    with open(world.store.local_path("run", thread, f"{base}.turn"), "a", encoding="utf-8") as file:
        file.write("0.1/0.1/0\n")
    begun = [event["id"] for event in follow(world, thread).read()][-3:]
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

    assert (
        next(told_flows(each)[0] for each in events if each["taskId"] == thread) == "workflow:error"
    )
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


def test_thread_that_went_another_way_has_only_that_way_new(world: World, thread: ThreadId) -> None:
    start = world.tip(thread)
    world.step(thread)
    here = world.tip(thread)
    world.store.refs.advance(f"refs/threads/{thread}", seen=here, to=start)
    world.patch(thread, {"a": 1})
    there = world.tip(thread)

    assert [each.commit for each in list_new(world.store, thread, there, known=here)] == [there]
    assert [each.commit for each in list_new(world.store, thread, there, known=Oid("0" * 40))] == [
        start,
        there,
    ]


def test_turn_ends_where_it_is_recorded(world: World, thread: ThreadId) -> None:
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
