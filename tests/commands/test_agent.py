import os
from pathlib import Path
from typing import Any

import pytest
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.agents.command_line import BadCommand
from uwf_git.commands.agent import (
    AgentCheck,
    AgentSelection,
    CheckRequest,
    check_agent,
    find_trusted_settings,
    select_agents,
    trust,
    untrust,
)
from uwf_git.store.git.config import GitConfig, add_config
from uwf_git.store.threads.heads import NoSuchThread
from uwf_git.store.trust import OLD_NAME, is_trusted, list_trusted, require_trusted, untrust_agents

AGENTS = "defaultAgent: everybody\nagentOverrides:\n  checker: {command: strict, timeout: 9}"
WITH_AGENTS = DEMO.replace("name: demo", f"name: bound\n{AGENTS}")


def allowed(world: World) -> list[dict[str, Any] | None]:
    world.reopen()
    return [each.agent for each in list_trusted(world.store)]


def test_agents_of_a_workflow_are_trusted_as_they_are(world: World) -> None:
    world.put(WITH_AGENTS)
    untrust_agents(world.store, command="everybody")
    untrust_agents(world.store, command="strict")
    strict = {"command": "strict", "timeout": 9}

    assert trust(world.store, AgentSelection(workflow="bound")) == [
        {"command": "everybody"},
        strict,
    ]
    assert untrust(world.store, AgentSelection("strict", workflow="bound"))[0].agent == strict
    assert allowed(world) == [{"command": "everybody"}]


def test_what_an_older_uwf_wrote_into_the_store_is_taken_over_by_one_command(world: World) -> None:
    thread = world.begun()
    untrust(world.store, AgentSelection("nobody"))
    for text in ('{"command":"nobody"}', "sha256:aa", '{"command":"./own"}'):
        add_config(f"{world.store.path}/config", OLD_NAME, text)
    world.reopen()
    with refuses("agent-not-trusted") as caught:
        world.step(thread)
    assert "`uwf agent trust --stored`" in (caught.value.hint or "")

    world.program("", name="own")
    trust(world.store, AgentSelection(stored=True, cwd=str(world.place)))

    assert allowed(world) == [{"command": "nobody"}, {"command": "./own"}]
    assert is_trusted(world.store, {"command": "./own"}, str(world.place))
    assert not is_trusted(world.store, {"command": "./own"}, "/elsewhere")
    assert world.step(thread).role == "writer"


def test_agents_of_a_thread_mean_the_files_of_its_work_directory(world: World) -> None:
    thread = world.start("./agent", workflow=world.put().workflow)
    untrust(world.store, AgentSelection("./agent"))
    meant = AgentSelection(thread=thread, cwd="/elsewhere")
    with refuses("agent-not-there", match="'./agent' does not exist"):
        trust(world.store, AgentSelection("./agent", cwd=str(world.place)))
    assert not is_trusted(world.store, {"command": "./agent"}, str(world.place))

    # An agent before it may make it.
    trust(world.store, meant)
    world.program("")
    assert is_trusted(world.store, {"command": "./agent"}, str(world.place))


def test_agents_and_checks_of_workflows_inside_are_selected_as_well(world: World) -> None:
    played = "{digger: {description: Digs., checks: [look]}, filler: {description: Fills.}}"
    path = "[{from: $START, to: digger}, {from: digger, to: filler}, {from: filler, to: $END}]"
    world.put(
        "name: inner\ndefaultAgent: dig\nagentOverrides: {filler: fill}\n"
        f"roles: {played}\nmoderator: {path}\n"
    )
    world.put(
        "name: outer\ndefaultAgent: lead\nroles: {builder: {workflow: inner}}\n"
        "moderator: [{from: $START, to: builder}, {from: builder, to: $END}]\n"
    )
    of_workflow = select_agents(world.store, AgentSelection(workflow="outer"))
    assert [agent["command"] for agent in of_workflow] == ["lead", "dig", "fill", "look"]

    thread = world.start("filler=other", workflow="outer")
    of_thread = select_agents(world.store, AgentSelection(thread=thread))
    assert [agent["command"] for agent in of_thread] == ["other", "dig", "look"]


def test_untrusting_a_command_means_it_with_any_settings(world: World) -> None:
    world.put(WITH_AGENTS)
    trust(world.store, AgentSelection("strict"))

    assert [each.agent for each in untrust(world.store, AgentSelection("strict"))] == [
        {"command": "strict", "timeout": 9},
        {"command": "strict"},
    ]
    assert allowed(world) == [{"command": "everybody"}]


@pytest.mark.parametrize(
    ("who", "error"),
    [
        (AgentSelection(), "nobody-meant"),
        (AgentSelection(thread="a", workflow="b"), "nobody-meant"),
        (AgentSelection(thread="a", stored=True), "nobody-meant"),
        (AgentSelection(stored=True), "no-such-agent"),
        (AgentSelection("'open"), BadCommand),
        (AgentSelection(thread="01J7K9M2XNPQR5VWBCDF8G3H4T"), NoSuchThread),
        (AgentSelection(workflow="nope"), "no-such-workflow"),
        (AgentSelection("other", workflow="bound"), "no-such-agent"),
        (AgentSelection(workflow="demo"), "no-such-agent"),
    ],
)
def test_missing_selection_is_refused(
    who: AgentSelection, error: str | type[Exception], world: World
) -> None:
    world.put(WITH_AGENTS)
    world.put()
    with refuses(error):
        select_agents(world.store, who)
    assert not is_trusted(world.store, {"command": "other"}, None)


@pytest.mark.parametrize("name", ["core.sshCommand", "CORE.sshcommand"])
def test_setting_of_the_store_is_trusted_for_its_value(name: str, world: World) -> None:
    world.configure("core.sshCommand", "ssh -i key")

    assert trust(world.store, AgentSelection(setting=name, cwd=str(world.place))) == [
        {"command": "ssh -i key", "setting": "core.sshcommand"}
    ]
    require_trusted(world.store, "core.sshCommand", world.store.path)
    assert not is_trusted(world.store, {"command": "ssh -i key"}, None)
    untrust(world.store, AgentSelection("ssh -i key"))
    with refuses("setting-not-trusted"):
        require_trusted(world.store, "core.sshCommand", world.store.path)


def test_setting_means_files_where_its_program_runs(world: World) -> None:
    for name in ("uwf.agent", "uwf.claude.reviewer.program", "gpg.program", "uwf.onEvent"):
        world.configure(name, "./program")
        trust(world.store, AgentSelection(setting=name, cwd=str(world.place)))

    agents, programs = str(world.place), world.store.path
    assert [each.directory for each in list_trusted(world.store)] == [
        agents, agents, programs, programs,
    ]  # fmt: skip


def test_setting_that_the_store_does_not_have_cannot_be_trusted(world: World) -> None:
    with refuses("no-setting-of-store", match=r"does not set gpg\.program"):
        trust(world.store, AgentSelection(setting="gpg.program"))
    with refuses("nobody-meant"):
        trust(world.store, AgentSelection(setting="gpg.program", stored=True))


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
