import os
from pathlib import Path

import pytest
from commands.world import World
from refusing import refuses

from uwf_git.agents.command_line import BadCommand
from uwf_git.commands.agent import AgentSelection, trust
from uwf_git.commands.agent_check import (
    AgentCheck,
    CheckRequest,
    check_agent,
    find_trusted_settings,
)
from uwf_git.store.git.config import GitConfig

ANSWER = """echo '{"meta": {"ok": true}}'"""


def check(world: World, command: str, **settings: list[str]) -> AgentCheck:
    config = GitConfig({name.replace("__", "."): values for name, values in settings.items()})
    request = CheckRequest(command, 20, world.new_id(), config)
    return check_agent(world.caller, request, on_stderr=lambda _: None)


def test_program_beside_the_caller_is_found(world: World) -> None:
    world.program(ANSWER, name="mine")

    assert check(world, "./mine 'a b'").meta == {"ok": True}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo out of ideas >&2; exit 4", "exit status 4: out of ideas"),
        ("echo hello", "neither a JSON object nor text with front matter"),
        ("""echo '{"meta": {"ok": "yes"}}'""", "meta.ok"),
    ],
)
def test_failing_agent_is_reported_with_the_reason(script: str, told: str, world: World) -> None:
    with refuses("check-failed", match=told) as caught:
        check(world, world.program(script))
    assert "agent-check" not in str(caught.value)


def test_missing_program_is_reported(world: World) -> None:
    with refuses("check-failed", match="not on the PATH"):
        check(world, "no-such-agent")
    with pytest.raises(BadCommand):
        check(world, "'open")


def test_agent_that_takes_too_long_is_ended(world: World) -> None:
    request = CheckRequest(world.program("exec sleep 80"), 1, world.new_id(), GitConfig({}))
    with refuses("check-failed", match="exceeded its time limit"):
        check_agent(world.caller, request, on_stderr=lambda _: None)


def test_agent_gets_the_settings_of_the_store_but_not_its_trust(world: World) -> None:
    script = """\
git config --file "$UWF_REPO/config" --list >&2
git config --file "$UWF_REPO/config" uwf.claude.model >&2 && echo '{"meta": {"ok": true}}'
"""
    log = bytearray()
    config = GitConfig(
        {"uwf.claude.model": ["opus"], "uwf.trustedagent": ["{}"], "user.name": ["A"]}
    )
    request = CheckRequest(world.program(script), 20, world.new_id(), config)
    check_agent(world.caller, request, on_stderr=log.extend)

    assert b"uwf.claude.model=opus" in log
    assert b"user.name" not in log
    assert b"uwf.trustedagent={}" not in log


def test_nothing_is_left(world: World, tmp_path: Path) -> None:
    before = sorted(os.listdir(world.store.path))
    check(world, world.program(f"pwd >{tmp_path}/where\n{ANSWER}"))

    assert sorted(os.listdir(world.store.path)) == before
    where = (tmp_path / "where").read_text().strip()
    assert where.endswith("/work")
    assert not Path(where).exists()


def test_person_cannot_be_tried(world: World) -> None:
    with refuses("nothing-runs") as caught:
        check(world, "human")
    assert "--agent ROLE=human" in (caught.value.hint or "")


def test_settings_that_are_trusted_reach_the_agent_as_variables(world: World) -> None:
    for name, value in (("args", "--mine"), ("env", "EVIL")):
        world.configure(f"uwf.claude.{name}", value)
    trust(world.store, AgentSelection(setting="uwf.claude.args", cwd=str(world.place)))

    assert find_trusted_settings(world.store, str(world.place)) == {"UWF_CLAUDE_ARGS": "--mine"}
    script = """[ "$UWF_CLAUDE_ARGS" = --mine ] && echo '{"meta": {"ok": true}}'"""
    trusted = {"UWF_CLAUDE_ARGS": "--mine"}
    request = CheckRequest(world.program(script), 20, world.new_id(), GitConfig({}), trusted)
    assert check_agent(world.caller, request, on_stderr=lambda _: None).meta == {"ok": True}
