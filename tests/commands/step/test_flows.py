"""Threads of flows: sequences, loops, conditions, branches, and what their results change."""

from collections.abc import Callable
from typing import Any

import pytest
from commands.world import World, fails, replied
from refusing import refuses

from uwf_git.commands.drive.drive_thread import Driven, DriveRequest, Watcher, drive_thread
from uwf_git.commands.inspect.context import get_context, load_thread_context
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.step.step_thread import StepRequest
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.commands.verify.thread import check_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import read_snapshot

LOOP = """\
name: turns
description: Until somebody is content.
initialState: {ok: false}
root:
  type: loop
  condition: state.ok !== true
  maxIterations: 5
  nodes:
    - {type: agent, agentId: coder}
    - {type: agent, agentId: reviewer}
"""

CHECKS = """\
name: checks
description: Several at once.
root:
  type: sequential
  nodes:
    - {type: agent, agentId: coder, output: code}
    - type: parallel
      name: checks
      nodes:
        - {type: agent, agentId: reviewer, output: review}
        - type: sequential
          name: testing
          nodes:
            - {type: agent, agentId: builder, output: build}
            - {type: agent, agentId: tester, output: tests}
    - {type: agent, agentId: closer, output: done}
"""

ITEMS = """\
name: items
description: One branch for each.
initialState: {files: [a, b, c]}
root:
  type: sequential
  nodes:
    - type: map
      name: each
      over: state.files
      as: file
      output: reports
      nodes:
        - {type: agent, agentId: reader, input: "read ${file}"}
    - {type: agent, agentId: writer}
"""


def script(**answers: Any) -> Player:
    """Return a player that says for each role its answer, or the next of a list of answers."""

    def play(turn: Turn) -> Played:
        answer = answers.get(turn.role, {})
        if isinstance(answer, list):
            answer = answer.pop(0)
        return replied({}, answer) if isinstance(answer, str) else replied(answer)

    return play


def run(world: World, thread: ThreadId, play: Player) -> list[str]:
    """Step a thread to its end, and return the roles that acted in it."""
    roles: list[str] = []
    for _ in range(100):
        done = world.step(thread, play)
        if done.status == "completed":
            return roles
        roles.append(done.role or done.said)
    raise AssertionError("it does not end")


def assert_sound(world: World, thread: ThreadId) -> None:
    head = get_head(world.store, thread)
    found = list(check_thread(world.store, thread, head.commit, archived=head.archived))
    assert [each.message for each in found] == []


PLANS = """\
name: plans
description: A pass for each.
initialState: {tries: 3, limits: {ms: null}}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: planner}
    - type: loop
      over: state.plans
      as: plan
      retries: ${state.tries - 1}
      nodes:
        - {type: agent, agentId: coder, input: "${state.plan.file}", timeout: "${state.limits.ms}"}
        - type: parallel
          nodes:
            - {type: agent, agentId: tester, input: "test ${plan.file} in ${iteration}"}
"""


def read_inputs(world: World, thread: ThreadId, play: Player, inputs: list[str]) -> Player:
    def noted(turn: Turn) -> Played:
        if turn.role in {"coder", "tester"}:
            context = get_context(world.store, turn.thread, role=turn.role)
            inputs.append(context["input"])
            assert context["state"]["plan"]["file"] in context["input"]
        return play(turn)

    return noted


def test_a_loop_over_a_list_has_a_pass_for_each_item_in_the_thread_itself(world: World) -> None:
    thread = world.begun(PLANS)
    plans = {"plans": [{"file": "000.md"}, {"file": "001.md"}]}
    inputs: list[str] = []

    roles = run(world, thread, read_inputs(world, thread, script(planner=plans), inputs))

    assert [role for role in roles if role == "coder"] == ["coder"] * 2
    assert inputs == ["000.md", "test 000.md in 0", "001.md", "test 001.md in 1"]
    present = world.snapshot(thread).get_present()
    assert present.at == "0/1.2/1"
    assert not {"plan", "planIndex"} & present.state.keys()
    assert_sound(world, thread)


def test_a_loop_over_nothing_is_left_at_once(world: World) -> None:
    thread = world.begun(PLANS)
    assert run(world, thread, script(planner={"plans": []})) == ["planner"]
    assert_sound(world, thread)


def test_a_template_says_how_often_an_agent_is_tried(world: World) -> None:
    thread = world.begun(PLANS)
    world.step(thread, script(planner={"plans": [{"file": "000.md"}]}))
    statuses = []
    for _ in range(3):
        with pytest.raises(TurnFailed):
            world.step(thread, fails())
        statuses.append(world.snapshot(thread).record.status)
    assert statuses == ["ready", "ready", "failed"]
    assert_sound(world, thread)


def test_a_template_without_a_fit_number_fails_before_the_agent_is_paid(world: World) -> None:
    thread = world.begun(PLANS.replace("tries: 3", "tries: 0.5"))
    world.step(thread, script(planner={"plans": [{"file": "000.md"}]}))
    with refuses("flow-value", match="and no whole number"):
        world.step(thread, script())


def test_branches_are_joined(world: World, git: Callable[..., str]) -> None:
    thread = world.begun(CHECKS)
    play = script(coder="x = 1", reviewer="fine", builder="built", tester="passed", closer="bye")

    roles = run(world, thread, play)

    state = world.snapshot(thread).get_present().state
    assert roles[0] == "coder"
    assert roles[-1] == "closer"
    assert (state["review"], state["build"], state["tests"]) == ("fine", "built", "passed")
    assert state["parallel_1"] == {"build": "built", "tests": "passed"}
    assert_sound(world, thread)
    assert git("fsck", "--strict", "--no-dangling", cwd=world.store.path) == ""


def test_a_map_has_a_branch_for_each_item(world: World) -> None:
    thread = world.begun(ITEMS)

    def play(turn: Turn) -> Played:
        state = turn.present.state
        return replied({}, f"report on {state['file']}" if turn.role == "reader" else "all")

    run(world, thread, play)

    state = world.snapshot(thread).get_present().state
    assert state["reports"] == ["report on a", "report on b", "report on c"]
    assert "file" not in state
    assert_sound(world, thread)


NESTED = """\
name: nested
description: Branches of branches.
initialState: {items: [1, 2]}
root:
  type: loop
  condition: iteration < 2
  maxIterations: 3
  nodes:
    - type: map
      name: outer
      over: state.items
      merge: {seen: append}
      nodes:
        - type: parallel
          name: inner
          nodes:
            - {type: agent, agentId: one}
            - {type: agent, agentId: other}
"""


TURNED = """\
name: turned
description: Branches in a loop in an item.
initialState: {items: [1, 2]}
root:
  type: map
  name: outer
  over: state.items
  output: results
  nodes:
    - type: loop
      maxIterations: 2
      nodes:
        - type: parallel
          name: inner
          merge: {seen: append}
          nodes:
            - {type: agent, agentId: one, input: "${item} in ${iteration}"}
            - {type: agent, agentId: other}
        - {type: agent, agentId: last}
"""


def test_branches_in_a_loop_in_an_item_split_in_every_pass(world: World) -> None:
    thread = world.begun(TURNED)
    given: list[object] = []

    def play(turn: Turn) -> Played:
        state = turn.present.state
        if turn.role == "one":
            context = load_thread_context(turn.store.path, turn.thread, role=turn.role)
            given.append(context["input"])
        return replied({"seen": [*state.get("seen", []), turn.role]} if turn.role != "last" else {})

    driven = drive(world, thread, play)

    assert driven.stopped == "end"
    assert sorted(map(str, given)) == ["1 in 0", "1 in 1", "2 in 0", "2 in 1"]
    first, *_ = (read_snapshot(world.store, oid) for oid in find_join(world, thread)[1:])
    present = first.get_present()
    assert present.state["seen"] == ["one", "other"] * 2
    assert present.visits == {"one": 2, "other": 2, "last": 2}
    assert_sound(world, thread)


def find_join(world: World, thread: ThreadId) -> tuple[Oid, ...]:
    """Return the parents of the newest join of a thread."""
    history = walk_history(world.store, world.snapshot(thread).commit.oid)
    return next(each.commit.parents for each in history if each.record.event == "join")


def drive(world: World, thread: ThreadId, play: Player, **options: Any) -> Driven:
    def ignore(*_args: object) -> None:
        return

    request = DriveRequest(StepRequest(thread, play), **options)
    watcher = Watcher(ignore, ignore, ignore)
    return drive_thread(world.store, world.caller, request, watcher=watcher)
