"""Flows at a turn: the agent's place, its rules, its input."""

import pytest
from commands.turns import script
from commands.world import World
from refusing import refuses

from uwf_git.commands.turn.next_move import find_next_move
from uwf_git.errors import Refused

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
    before = world.tip(thread)

    with pytest.raises(Refused) as caught:
        world.step(thread, lambda _turn: pytest.fail("the agent was run"))

    assert caught.value.code == code
    assert f"`uwf thread patch {thread} JSON`" in str(caught.value.hint)
    assert world.tip(thread) == before
    problem = find_next_move(world.snapshot(thread)).problem
    assert problem is not None
    assert problem.code == code
    world.patch(thread, {"plan": {"text": "Do this."} if language == "javascript" else "7"})
    assert world.step(thread, script()).role == "two"


def test_a_flow_that_goes_round_says_what_to_type(world: World) -> None:
    thread = world.begun(
        "name: round\ndescription: d\n"
        "root: {type: loop, condition: 'true', maxIterations: 1000000, nodes: [{type: conditional, "
        "condition: state.some, nodes: [{type: agent, agentId: one}]}]}\n"
    )

    with refuses("flow-goes-round") as caught:
        world.step(thread, script())

    assert f"`uwf thread patch {thread} JSON`" in str(caught.value.hint)
