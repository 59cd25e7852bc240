"""Binding roles to agents; lifecycle/test_start.py tests what a thread begins with."""

import json
from typing import Any

import pytest
from commands.world import DEMO, World

from uwf_git.commands.turn.choose_agent import Bound, bind_roles, bind_typed, find_played
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.model.workflow import Workflow
from uwf_git.store.trust import is_trusted


def demo(world: World, more: str = "") -> Workflow:
    world.put(DEMO + more)
    return find_workflow(world.store, "demo").workflow


def typed(world: World, workflow: Workflow, *texts: str, **how: Any) -> Bound:
    def may_run(agent: dict[str, Any]) -> bool:
        return is_trusted(world.store, agent, None)

    find_base = how.pop("find_base", {}.get)
    return bind_typed(workflow, texts, find_base=find_base, may_run=may_run, **how)


def test_typed_agents_are_those_of_no_other_role(world: World) -> None:
    workflow = demo(world, "defaultAgent: written\n")

    assert typed(world, workflow, "checker=c").agents == {"checker": {"command": "c"}}
    assert typed(world, workflow, "checker=c", "all").agents == {
        "writer": {"command": "all"},
        "checker": {"command": "c"},
    }
    assert typed(world, workflow) == Bound({}, [])


def test_settings_without_a_command_change_what_the_workflow_says(world: World) -> None:
    workflow = demo(world, "defaultAgent: {command: written, retries: 2}\n")

    bound = bind_roles(world.store, workflow, typed=('checker={"timeout": 5}',))

    assert bound.agents["checker"] == {"command": "written", "retries": 2, "timeout": 5}
    assert bound.agents["writer"] == {"command": "written", "retries": 2}
    # `put` trusts the agents of a workflow; this one came by the same hands.
    assert bound.typed == [bound.agents["checker"]]
    with_command = bind_roles(world.store, workflow, typed=('{"command": "mine", "timeout": 5}',))
    assert with_command.agents["writer"] == {"command": "mine", "timeout": 5}


def test_settings_over_a_foreign_agent_do_not_let_it_run(world: World) -> None:
    foreign = {"command": "theirs", "env": {"LD_PRELOAD": "evil.so"}}
    workflow = demo(world)

    def bound(text: str) -> Bound:
        return typed(world, workflow, text, find_base={"checker": foreign}.get, keeps=True)

    assert bound('checker={"timeout": 5}') == Bound({"checker": {**foreign, "timeout": 5}}, [])
    assert bound("checker=mine") == Bound({"checker": {**foreign, "command": "mine"}}, [])
    mine = {"command": "mine"}
    cleared = 'checker={"command": "mine", "env": {"LD_PRELOAD": null}}'
    assert bound(cleared) == Bound({"checker": mine}, [mine])


@pytest.mark.parametrize(
    "bound", ["human", "uwf-human", "uwf-shell 'make test'", "/opt/bin/uwf-check plans"]
)
def test_command_for_every_role_leaves_whom_the_file_has_check(world: World, bound: str) -> None:
    workflow = demo(world, f"agentOverrides: {{checker: {json.dumps(bound)}}}\n")

    bare = bind_roles(world.store, workflow, typed=("mine",))
    named = bind_roles(world.store, workflow, typed=("mine", "checker=other"))
    settings = bind_roles(world.store, workflow, typed=('{"timeout": 5}', "writer=mine"))

    assert bare.agents == {"writer": {"command": "mine"}, "checker": {"command": bound}}
    assert bare.left == ("checker",)
    assert (named.agents["checker"], named.left) == ({"command": "other"}, ())
    assert settings.agents["checker"] == {"command": bound, "timeout": 5}


def test_person_of_a_thread_is_left_unless_a_person_is_the_default(world: World) -> None:
    person, other = {"command": "human"}, {"command": "other"}
    workflow = demo(world, "agentOverrides: {writer: human}\n")

    def left(base: dict[str, dict[str, Any]], default: Any = None) -> tuple[str, ...]:
        told = workflow._replace(default_agent=default)
        return typed(world, told, "mine", find_base=base.get, keeps=True).left

    assert left({"writer": other, "checker": person}) == ("checker",)
    assert left({"writer": person, "checker": person}, default=person) == ("writer",)


def test_role_of_an_inner_workflow_is_left_to_its_person(world: World) -> None:
    world.put(DEMO + "agentOverrides: {checker: human}\n")
    outer = "name: outer\nroles: {first: {}}\ndefaultAgent: human\n"
    nodes = "[{type: agent, agentId: first}, {type: workflow, use: demo}]"
    world.put(f"{outer}root: {{type: sequential, nodes: {nodes}}}")
    found = find_workflow(world.store, "outer")

    bound = bind_roles(world.store, find_played(found.workflow, found.closure), typed=("mine",))

    assert (bound.left, bound.agents["checker"]) == (("checker",), {"command": "human"})
    assert bound.agents["first"] == bound.agents["writer"] == {"command": "mine"}
