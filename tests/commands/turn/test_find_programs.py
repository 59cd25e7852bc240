"""Values of `--agent`; test_bind_roles.py and test_choose_agent.py try what they lead to."""

import os
from pathlib import Path
from typing import Any

from refusing import refuses

from uwf_git.commands.turn.choose_agent import (
    TypedAgent,
    find_missing_programs,
    lay_over,
)
from uwf_git.store.git.config import GitConfig

NOTHING = GitConfig({})


def program(folder: Path, name: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return name


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


def test_command_replaces_an_agent_unless_its_settings_are_kept() -> None:
    base = {"command": "old", "timeout": 3}
    typed = [TypedAgent(None, {"command": "new"}), TypedAgent("r", {"retries": 1})]

    def laid(*, keeps: bool) -> tuple[dict[str, Any], bool]:
        return lay_over("r", base, typed, may_run=False, keeps=keeps)

    assert laid(keeps=False) == ({"command": "new", "retries": 1}, True)
    kept = {"command": "new", "timeout": 3, "retries": 1}
    assert laid(keeps=True) == (kept, True)
    only = [TypedAgent("r", {"retries": 1})]
    assert not lay_over("r", base, only, may_run=False, keeps=True)[1]
    assert lay_over("r", base, only, may_run=True, keeps=True)[1]


def test_settings_need_a_command_to_be_laid_over() -> None:
    with refuses("command-unnamed"):
        lay_over("r", None, [TypedAgent("r", {"retries": 1})], may_run=True, keeps=False)
