"""Flows at a turn: the agent's place, its rules, its input."""

from typing import Any

import pytest
from commands.step.test_record_turn import script
from commands.world import World
from refusing import refuses

from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.turn.flow import fill_input, find_place
from uwf_git.commands.turn.next_move import decide_next, find_next_move
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import parse_workflow

FLOW = """\
name: rules
description: Rules of places.
initialState: {n: 2}
root:
  type: loop
  maxIterations: 2
  retries: 3
  timeout: 5000
  nodes:
    - {type: agent, agentId: one, retries: 1, input: "pass ${iteration} of ${state.n}"}
    - {type: agent, agentId: two, onError: continue, timeout: 100}
    - {type: agent, agentId: three, input: {all: "${state}", text: "${prompt}"}}
"""


def place_of(world: World, thread: ThreadId, at: str) -> Any:
    place = find_place(world.snapshot(thread), at)
    assert place is not None
    return place


def test_rules_come_from_the_place_or_the_nearest_container(world: World) -> None:
    thread = world.begun(FLOW)

    one, two, three = (place_of(world, thread, f"0.1/{n}") for n in range(3))

    assert [(each.retries, each.timeout_s) for each in (one, two, three)] == [
        (1, 5.0),
        (3, 0.1),
        (3, 5.0),
    ]
    assert [each.find_given_up() for each in (one, two, three)] == [None, "0.1/1", None]


def test_a_place_without_an_agent_is_none(world: World) -> None:
    thread = world.begun(FLOW)

    assert [find_place(world.snapshot(thread), at) for at in ("0", "0.1/9", "x")] == [None] * 3
    assert find_place(world.snapshot(world.begun()), "0") is None


def test_an_input_is_filled_where_the_thread_stands(world: World) -> None:
    thread = world.begun(FLOW)
    for _ in range(3):
        world.step(thread, script())
    snapshot = world.snapshot(thread)
    present = snapshot.get_present()

    assert fill_input(snapshot, present, place_of(world, thread, "0.2/0")) == "pass 1 of 2"
    filled = fill_input(snapshot, present, place_of(world, thread, "0.2/2"))
    assert filled["all"]["n"] == 2
    assert filled["text"] == "Do it."
    assert fill_input(snapshot, present, place_of(world, thread, "0.2/1")) is None


def test_the_next_turn_has_its_place(world: World) -> None:
    thread = world.begun(FLOW)
    for role, at in (("one", "0.1/0"), ("two", "0.1/1"), ("three", "0.1/2"), ("one", "0.2/0")):
        snapshot = world.snapshot(thread)
        workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
        turn = decide_next(snapshot, snapshot.get_present(), workflow)
        assert (turn.role, turn.at, turn.splits) == (role, at, False)
        world.step(thread, script())


UNFILLED = """\
name: unfilled
description: An input that nothing fills yet.
root:
  type: sequential
  nodes:
    - {type: agent, agentId: one}
    - {type: agent, agentId: two, input: "${state.plan.text}", onError: continue, retries: 3}
"""


@pytest.mark.parametrize(
    ("language", "code"), [("javascript", "expression-failed"), ("jsonata", "condition-failed")]
)
def test_an_input_that_cannot_be_filled_costs_no_attempt(
    world: World, language: str, code: str
) -> None:
    template = "${state.plan.text}" if language == "javascript" else "${$number(state.plan)}"
    source = UNFILLED.replace("${state.plan.text}", template)
    thread = world.begun(f"{source}language: {language}\ninitialState: {{plan: null}}\n")
    world.step(thread, script())
    before = world.snapshot(thread).commit.oid

    with pytest.raises(Refused) as caught:
        world.step(thread, lambda _turn: pytest.fail("the agent was run"))

    assert caught.value.code == code
    assert f"`uwf thread patch {thread} JSON`" in str(caught.value.hint)
    assert world.snapshot(thread).commit.oid == before
    problem = find_next_move(world.snapshot(thread)).problem
    assert problem is not None
    assert problem.code == code
    patched = {"plan": {"text": "Do this."} if language == "javascript" else "7"}
    patch_thread(world.store, world.caller, thread, patched)
    assert world.step(thread, script()).role == "two"


TRIED = """\
name: tried
description: Work whose input and verdict read the state.
initialState: {plan: {text: x}, rules: {text: y}}
root:
  type: agent
  agentId: one
  retries: 2
  input: "${state.plan.text}"
  verifiedBy: {agentId: two, when: meta.good === true, input: "${state.rules.text}"}
"""


@pytest.mark.parametrize("lost", ["plan", "rules"])
@pytest.mark.parametrize("is_verdict", [True, False])
def test_an_open_try_costs_nothing_while_its_input_cannot_be_filled(
    world: World, lost: str, *, is_verdict: bool
) -> None:
    thread = world.begun(TRIED)
    world.step(thread, script())
    if not is_verdict:
        world.step(thread, script(two={"good": False}))
    patch_thread(world.store, world.caller, thread, {lost: None})
    if lost == "rules" and not is_verdict:
        assert world.step(thread, script()).role == "one"
        return

    with pytest.raises(Refused, match="has no member") as caught:
        world.step(thread, lambda _turn: pytest.fail("the agent was run"))

    assert f"`uwf thread patch {thread} JSON`" in str(caught.value.hint)
    patch_thread(world.store, world.caller, thread, {lost: {"text": "z"}})
    assert world.step(thread, script()).role == ("two" if is_verdict else "one")


def test_a_flow_that_goes_round_says_what_to_type(world: World) -> None:
    thread = world.begun(
        "name: round\ndescription: d\n"
        "root: {type: loop, condition: 'true', maxIterations: 1000000, nodes: [{type: conditional, "
        "condition: state.some, nodes: [{type: agent, agentId: one}]}]}\n"
    )

    with refuses("flow-goes-round") as caught:
        world.step(thread, script())

    assert f"`uwf thread patch {thread} JSON`" in str(caught.value.hint)
