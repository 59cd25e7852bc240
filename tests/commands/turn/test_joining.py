"""Why branches cannot end or be joined, before anybody tries."""

from typing import Any

from commands.flow_runs import branches, script
from commands.world import World

from uwf_git.commands.control.steer import kill_thread, patch_thread
from uwf_git.commands.turn.branches import find_join_problem
from uwf_git.engine.flow_state import MAX_STATE_BYTES
from uwf_git.errors import Refused, UwfError
from uwf_git.model.names import ThreadId

PAIR = """\
name: pair
root: {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
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


def test_a_conflict_is_a_problem_once_all_have_ended_and_until_it_is_settled(
    world: World,
) -> None:
    thread = world.begun(PAIR)
    assert problem_of(world, thread) is None
    world.step(thread)
    answers: dict[ThreadId, Any] = dict(zip(branches(world, thread), (1, 2), strict=True))
    for branch, answer in answers.items():
        world.step(branch, script(one={"same": answer}, two={"same": answer}))
        assert problem_of(world, thread) is None
        world.step(branch)

    problem = problem_of(world, thread)
    assert problem is not None
    assert problem.code == "merge-conflict"

    patch_thread(world.store, world.caller, thread, {"same": 3})
    assert problem_of(world, thread) is None


def test_a_result_that_does_not_fit_is_a_problem_before_the_branch_ends(world: World) -> None:
    world.put(INNER)
    thread = world.begun(GRAPH)
    world.step(thread)
    (inner,) = branches(world, thread)
    assert problem_of(world, thread) is None

    world.step(inner, script(digger={"bad": 1}))

    problem = problem_of(world, thread)
    assert isinstance(problem, Refused)
    assert f"`uwf thread poke {inner}" in (problem.hint or "")

    kill_thread(world.store, world.caller, inner)
    problem = problem_of(world, thread)
    assert f"`uwf thread fork {thread}`" in ("" if problem is None else problem.hint or "")


def test_branches_that_say_too_much_together_cannot_be_joined(world: World) -> None:
    thread = world.begun(PAIR)
    world.step(thread)
    much = "x" * (MAX_STATE_BYTES // 4)
    for branch in branches(world, thread):
        world.step(branch, script(one={"a": much}, two={"b": much}))
        world.step(branch)

    problem = problem_of(world, thread)
    assert problem is not None
    assert problem.code == "state-too-large"
