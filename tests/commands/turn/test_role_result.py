"""Results that do not fit the role of a graph: what holds the thread up, and what to do."""

import pytest
from commands.flow_runs import assert_sound, branches, drive, script
from commands.step.test_played_roles import INNER, MIDDLE, OUTER, begun
from commands.world import World
from refusing import refuses

from uwf_git.commands.control.change_rules import AmendRequest, amend_thread, poke_thread
from uwf_git.commands.control.steer import kill_thread
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.lifecycle.fork import ForkRequest, fork_thread
from uwf_git.commands.turn.branches import WrongStatus, find_unfit_end
from uwf_git.commands.turn.next_move import NextMove, advise
from uwf_git.errors import Refused

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
        poke_thread(world.store, world.caller, middle)

    hint = caught.value.hint or ""

    assert f"`uwf thread fork {thread}`" in hint
    shown = show_thread(world.store, thread)
    error, status = caught.value.message, "ready"
    assert shown["heldBy"] == [{"thread": middle, "status": status, "error": error, "hint": hint}]
    told = advise(world.store, world.snapshot(thread), NextMove())
    assert (told.text, told.is_usual) == (f"{error}; {hint}", False)
    # As the hint says.
    request = ForkRequest(thread)
    fork = fork_thread(world.store, world.caller, request, thread=world.new_id()).thread
    world.put(INNER)
    world.put(MIDDLE)
    workflow = world.put(OUTER).workflow
    amend_thread(
        world.store, world.caller, AmendRequest(fork, workflow=workflow, default_agent="nobody")
    )
    play = script(digger={"depth": 2}, closer={"good": True})
    assert drive(world, fork, play)[0].stopped == "end"
    assert_sound(world, fork)


def test_a_killed_branch_is_no_result(world: World) -> None:
    thread = begun(world)
    for _ in range(3):
        world.step(thread, script())

    kill_thread(world.store, world.caller, branches(world, thread)[0])
    told = world.step(thread, script())

    assert [type(each.error) for each in told.branches] == [Refused]
    assert world.snapshot(thread).record.status == "split"
    (held,) = show_thread(world.store, thread)["heldBy"]
    assert "'good' is a required property" in held["error"]
    assert (
        held["hint"]
        == f"`uwf thread fork {thread}` begins a thread in which the role is played anew"
    )


def test_a_branch_that_takes_steps_still_holds_nothing_up(world: World) -> None:
    thread = begun(world)
    world.step(thread, script())
    assert find_unfit_end(world.store, world.snapshot(thread)) is None
    world.step(thread, script())

    assert find_unfit_end(world.store, world.snapshot(thread)) is None
    world.step(thread, script())
    assert find_unfit_end(world.store, world.snapshot(thread)) is None
    assert "heldBy" not in show_thread(world.store, thread)
