"""Values of `--agent`; test_bind_roles.py and test_choose_agent.py try what they lead to."""

import pytest
from commands.world import World
from refusing import refuses

from uwf_git.commands.turn.bind_roles import (
    LaidOver,
    TypedAgent,
    lay_over,
    read_typed,
    role_not_next,
)
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import END


def test_values_for_every_role_come_first_and_settings_name_no_role(world: World) -> None:
    world.put()
    workflow = find_workflow(world.store, "demo").workflow

    typed = read_typed(workflow, ("writer=w", "env A=1 x", ' {"command": "c", "env": {"A": "="}}'))

    assert typed == [
        TypedAgent(None, {"command": "env A=1 x"}),
        TypedAgent(None, {"command": "c", "env": {"A": "="}}),
        TypedAgent("writer", {"command": "w"}),
    ]


def test_command_replaces_an_agent_unless_its_settings_are_kept() -> None:
    base = {"command": "old", "timeout": 3}
    typed = [TypedAgent(None, {"command": "new"}), TypedAgent("r", {"retries": 1})]

    def laid(*, keeps: bool) -> LaidOver:
        return lay_over("r", base, typed, may_run=False, keeps=keeps)

    assert laid(keeps=False) == LaidOver({"command": "new", "retries": 1}, is_own=True)
    kept = {"command": "new", "timeout": 3, "retries": 1}
    assert laid(keeps=True) == LaidOver(kept, is_own=True)
    only = [TypedAgent("r", {"retries": 1})]
    assert not lay_over("r", base, only, may_run=False, keeps=True).is_own
    assert lay_over("r", base, only, may_run=True, keeps=True).is_own


def test_settings_need_a_command_to_be_laid_over() -> None:
    with refuses("command-unnamed"):
        lay_over("r", None, [TypedAgent("r", {"retries": 1})], may_run=True, keeps=False)


@pytest.mark.parametrize(
    ("text", "name"),
    [("{command: c, speed: 1}", "--agent"), ("writer={speed: 1}", "--agent writer")],
)
def test_wrong_settings_are_named_as_they_were_typed(world: World, text: str, name: str) -> None:
    world.put()
    workflow = find_workflow(world.store, "demo").workflow

    with refuses("bad-agent", match=f"^{name} is no agent"):
        read_typed(workflow, (text,))


@pytest.mark.parametrize(("role", "next_role"), [("checker", "checker"), (END, None)])
def test_role_that_is_not_next_tells_who_is(role: str, next_role: str | None) -> None:
    refused = role_not_next(ThreadId("01J00000000000000000000001"), "writer", role)
    assert (refused.facts["role"], refused.facts["next"]) == ("writer", next_role)
