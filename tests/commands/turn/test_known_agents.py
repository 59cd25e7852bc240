import importlib
import os
from pathlib import Path

import pytest

from uwf_git.agentkit.programs.command import CommandAdapter
from uwf_git.commands.turn.choose_agent import (
    KNOWN,
    KnownAgent,
    find_agents,
    name_agent,
    tell_adapter,
)
from uwf_git.commands.turn.next_move import PERSON

ADAPTERS = Path(importlib.import_module("uwf_git.agentkit.adapters").__path__[0])


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


ADAPTED = [agent for agent in KNOWN if agent.command != PERSON]


@pytest.mark.parametrize("agent", ADAPTED, ids=lambda agent: agent.command)
def test_table_says_what_the_adapters_say(agent: KnownAgent) -> None:
    name = agent.command.removeprefix("uwf-")
    module = importlib.import_module(f"uwf_git.agentkit.adapters.{name}")
    assert callable(module.main)
    adapters = [each for each in vars(module).values() if isinstance(each, CommandAdapter)]
    for adapter in adapters:
        assert adapter.name == name
        assert (adapter.programs or (name,))[: len(agent.programs)] == agent.programs
        assert agent.install in adapter.install
    assert bool(adapters) == bool(agent.programs) or name == "cli"


def test_every_adapter_is_in_the_table() -> None:
    # uwf-check judges what others did.
    files = {path.stem for path in ADAPTERS.glob("*.py")} - {"__init__", "__main__", "check"}
    mains = {
        name
        for name in files
        if hasattr(importlib.import_module(f"uwf_git.agentkit.adapters.{name}"), "main")
    }

    assert {f"uwf-{name}" for name in mains} == {agent.command for agent in ADAPTED}


def test_programs_are_found_with_their_versions(tmp_path: Path) -> None:
    claude = program(tmp_path, "claude", 'test "$1" = --version && echo "2.1.329 (Claude Code)"')
    program(tmp_path, "codex", "echo codex-cli 0.169.0; exit 1")
    program(tmp_path, "agent", "echo no number")
    found = {
        each.agent.command: each
        for each in find_agents({**os.environ, "PATH": f"{tmp_path}:/bin"}, with_versions=True)
    }

    assert (found["uwf-claude"].path, found["uwf-claude"].version) == (claude, "2.1.329")
    assert found["uwf-codex"].is_here
    assert found["uwf-codex"].version is None
    assert found["uwf-cursor"].path == str(tmp_path / "agent")
    assert not found["uwf-gemini"].is_here
    assert found["uwf-llm"].is_here


@pytest.mark.parametrize("value", ["x" * 200_000, "a\0b"], ids=["too long", "NUL"])
def test_program_that_cannot_be_started_has_no_version(tmp_path: Path, value: str) -> None:
    path = program(tmp_path, "claude", "echo 2.1.329")

    found = find_agents({"PATH": f"{tmp_path}:/bin", "VARIABLE": value}, with_versions=True)

    assert (found[0].path, found[0].version) == (path, None)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("claude", "uwf-claude"),
        ("uwf-claude", "uwf-claude"),
        ("claude --model opus", "uwf-claude --model opus"),
        ("acp 'gemini --acp'", "uwf-acp 'gemini --acp'"),
        ("human", "human"),
        (" human ", "human"),
        ("human --slow", "uwf-human --slow"),
        ("./mine --fast", "./mine --fast"),
        ("/usr/bin/claude", "/usr/bin/claude"),
    ],
)
def test_name_stands_for_its_adapter(text: str, command: str) -> None:
    assert name_agent(text) == command


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("claude", "uwf-claude"),
        ("hermes --fast", "'uwf-hermes --fast'"),
        ("uwf-claude", None),
        ("/opt/claude", None),
        ("human", None),
    ],
)
def test_adapter_of_a_program_is_named(command: str, typed: str | None) -> None:
    told = tell_adapter(command)

    assert (told is None) == (typed is None)
    assert told is None or told.endswith(f"`--agent {typed}`")
