from typing import Any

import pytest
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.agents.command_line import BadCommand
from uwf_git.commands.agent import AgentSelection, select_agents, trust, untrust
from uwf_git.store.git.config import add_config
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

    trust(world.store, AgentSelection(stored=True, cwd=str(world.place)))

    assert allowed(world) == [{"command": "nobody"}, {"command": "./own"}]
    assert is_trusted(world.store, {"command": "./own"}, str(world.place))
    assert not is_trusted(world.store, {"command": "./own"}, "/elsewhere")
    assert world.step(thread).role == "writer"


def test_agents_of_a_thread_mean_the_files_of_its_work_directory(world: World) -> None:
    thread = world.start("./agent", workflow=world.put().workflow)
    untrust(world.store, AgentSelection("./agent"))
    trust(world.store, AgentSelection(thread=thread, cwd="/elsewhere"))
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
    gone = untrust(world.store, AgentSelection("strict"))

    assert [each.agent for each in gone] == [
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
