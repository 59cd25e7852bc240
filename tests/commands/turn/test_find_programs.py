import os
from pathlib import Path
from typing import Any

from uwf_git.commands.turn.bind_roles import agent_missing, find_missing_programs
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
