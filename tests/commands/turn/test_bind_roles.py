"""Binding roles to agents; test_thread_start.py tests what a thread begins with."""

import pytest
from commands.world import DEMO, World

from uwf_git.agents.command_line import BadCommand
from uwf_git.commands.turn.bind_roles import Bound, NoSuchRole, bind_roles, bind_typed
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.model.workflow import Workflow


def demo(world: World, more: str = "") -> Workflow:
    world.put(DEMO + more)
    return find_workflow(world.store, "demo").workflow


def test_role_without_a_named_agent_is_unbound(world: World) -> None:
    assert bind_roles(world.store, demo(world)) == Bound({}, [])


def test_what_was_typed_may_run_and_what_the_workflow_says_need_not(world: World) -> None:
    workflow = demo(world, "defaultAgent: written\n")

    bound = bind_roles(world.store, workflow, typed=("checker=typed",), default="unused")

    assert bound.agents == {"writer": {"command": "written"}, "checker": {"command": "typed"}}
    assert bound.typed == [{"command": "typed"}]


def test_default_of_the_caller_may_run_where_it_plays(world: World) -> None:
    workflow = demo(world, "agentOverrides: {checker: written}\n")

    assert bind_roles(world.store, workflow, default="mine").typed == [{"command": "mine"}]
    only_written = bind_roles(world.store, workflow, typed=("writer=w",), default="mine")
    assert only_written.typed == [{"command": "w"}]


def test_typed_agents_are_those_of_no_other_role(world: World) -> None:
    workflow = demo(world, "defaultAgent: written\n")

    assert bind_typed(workflow, ("checker=c",)).agents == {"checker": {"command": "c"}}
    assert bind_typed(workflow, ("checker=c", "all")).agents == {
        "writer": {"command": "all"},
        "checker": {"command": "c"},
    }
    assert bind_typed(workflow, ()) == Bound({}, [])


def test_words_that_mean_nothing_are_reported(world: World) -> None:
    workflow = demo(world)

    with pytest.raises(NoSuchRole, match="workflow demo has no role editor"):
        bind_typed(workflow, ("editor=x",))
    with pytest.raises(BadCommand):
        bind_roles(world.store, workflow, default="'x")
