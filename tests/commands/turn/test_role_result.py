"""Results that do not fit the role of a graph: what holds the thread up, and what to do."""

import pytest
from commands.flow_runs import drive, script
from commands.step.test_played_roles import INNER, MIDDLE, OUTER
from commands.world import World
from refusing import refuses

from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.turn.branches import WrongStatus
from uwf_git.commands.turn.next_move import NextMove, advise

PARALLEL = """\
name: middle
description: Ends with a join.
root: {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
"""

NEVER = """\
name: middle
description: Takes no step.
root: {type: conditional, condition: state.never, nodes: [{type: agent, agentId: one}]}
"""


@pytest.mark.parametrize(("source", "problem"), [(PARALLEL, "'good'"), (NEVER, "None is not")])
def test_a_result_that_no_step_can_mend_needs_another_workflow(
    world: World, source: str, problem: str
) -> None:
    world.put(source)
    thread = world.begun(OUTER)
    with refuses("meta-unfit", match=problem) as caught:
        drive(world, thread, script())
    middle = caught.value.facts["thread"]
    with pytest.raises(WrongStatus):
        world.poke(middle)

    hint = caught.value.hint or ""

    assert f"`uwf thread fork {thread}`" in hint
    shown = show_thread(world.store, thread)
    error, status = caught.value.message, "ready"
    assert shown["heldBy"] == [{"thread": middle, "status": status, "error": error, "hint": hint}]
    told = advise(world.store, world.snapshot(thread), NextMove())
    assert (told.text, told.is_usual) == (f"{error}; {hint}", False)
    # As the hint says.
    fork = world.fork(thread)
    world.put(INNER)
    world.put(MIDDLE)
    workflow = world.put(OUTER).workflow
    world.amend(fork, workflow=workflow, default_agent="nobody")
    play = script(digger={"depth": 2}, closer={"good": True})
    assert drive(world, fork, play)[0].stopped == "end"
    world.assert_sound(fork)
