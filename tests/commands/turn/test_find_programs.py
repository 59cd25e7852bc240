"""Values of `--agent`; test_bind_roles.py and test_choose_agent.py try what they lead to."""

import os
from pathlib import Path
from typing import Any

import pytest
from commands.world import World
from refusing import refuses

from uwf_git.commands.turn.bind_roles import (
    LaidOver,
    TypedAgent,
    agent_missing,
    find_missing_programs,
    lay_over,
    read_typed,
    role_not_next,
)
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import END
from uwf_git.store.git.config import GitConfig

NOTHING = GitConfig({})


def program(folder: Path, name: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return name


def test_programs_are_found_as_a_step_would_find_them(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"]}
    agents: dict[str, dict[str, Any]] = {
        "relative": {"command": f"./here/{program(tmp_path / 'here', 'one')} --x"},
        "on its own path": {
            "command": program(tmp_path / "there", "two"),
            "env": {"PATH": str(tmp_path / "there")},
        },
        "with python": {"command": "uwf-mock script.yaml"},
        "person": {"command": " human"},
    }

    assert find_missing_programs(agents, environ, str(tmp_path), NOTHING) == []


def test_missing_program_is_told_once_with_its_roles(tmp_path: Path) -> None:
    agents = {role: {"command": "no-such"} for role in ("a", "b")} | {"c": {"command": "./none"}}

    environ = {"PATH": os.environ["PATH"]}

    missing = find_missing_programs(agents, environ, str(tmp_path), NOTHING)

    assert [each.roles for each in missing] == [("a", "b"), ("c",)]
    error = agent_missing(missing[0])
    assert error.message.endswith("it would play a, b")
    assert error.facts["program"] == "no-such"


def test_adapter_that_is_told_its_program_is_believed(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"]}
    where = {
        "by a word": ("uwf-hermes --program ./it", environ, NOTHING),
        "by a variable": ("uwf-hermes", environ | {"UWF_HERMES_PROGRAM": "./it"}, NOTHING),
        "by config": ("uwf-hermes", environ, GitConfig({"uwf.hermes.program": ["./it"]})),
        "on the path": (
            "uwf-hermes",
            {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            NOTHING,
        ),
    }
    program(tmp_path, "hermes")

    for command, environ, config in where.values():
        agents = {"writer": {"command": command}}
        assert find_missing_programs(agents, environ, str(tmp_path), config) == []


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
