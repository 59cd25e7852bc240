import os
from pathlib import Path
from typing import Any

from uwf_git.commands.turn.bind_roles import agent_missing, find_missing_programs


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

    assert find_missing_programs(agents, environ, str(tmp_path)) == []


def test_missing_program_is_told_once_with_its_roles(tmp_path: Path) -> None:
    agents = {role: {"command": "no-such"} for role in ("a", "b")} | {"c": {"command": "./none"}}

    missing = find_missing_programs(agents, {"PATH": os.environ["PATH"]}, str(tmp_path))

    assert [each.roles for each in missing] == [("a", "b"), ("c",)]
    error = agent_missing(missing[0])
    assert error.message.endswith("it would play a, b")
    assert error.facts["program"] == "no-such"
