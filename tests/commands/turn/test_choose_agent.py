"""Which agent plays a role, and which may run: 000 section 1.3, and the trust rule."""

import importlib
import json
import os
import tomllib
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from commands.agent_run.test_run_checks import ANSWER, CHECKED
from commands.worktree.project import PAIR, begin_project, children
from commands.world import DEMO, Git, World, content_player
from programs import write_program
from refusing import refuses

from uwf_git.agentkit.programs.command import CommandAdapter
from uwf_git.commands.admin import set_setting
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.choose_agent import (
    KNOWN,
    Bound,
    KnownAgent,
    TypedAgent,
    bind_roles,
    bind_typed,
    find_agents,
    find_missing_programs,
    find_played,
    lay_over,
    name_agent,
    tell_adapter,
)
from uwf_git.commands.turn.next_move import PERSON
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.model.names import ThreadId
from uwf_git.model.text import quote_path
from uwf_git.model.workflow import Workflow
from uwf_git.store.git.config import GitConfig
from uwf_git.store.store import create_store, open_store
from uwf_git.store.threads.local_files import set_workdir
from uwf_git.store.trust import is_trusted, list_trusted, untrust_agents

BOUND = DEMO + "defaultAgent: from-the-workflow\n"


def unbound_thread(world: World) -> ThreadId:
    """Start a thread without naming an agent."""
    return world.begin(StartRequest("demo", "Do it."))


def played_by(world: World, thread: str, **choice: Any) -> str:
    """Take a step and return the command of its agent."""
    seen: list[str] = []

    def play(turn: Turn) -> Played:
        seen.append(turn.agent.payload["command"])
        return content_player(turn)

    world.step(thread, play, **choice)
    return seen[0]


def test_agent_of_the_step_may_name_its_role(world: World, thread: ThreadId) -> None:
    assert played_by(world, thread, command="writer=mine") == "mine"
    with refuses("role-not-next", match=r"writer is not next .* the turn of checker"):
        world.step(thread, command="writer=mine")
    assert world.snapshot(thread).record.depth == 1


def test_default_of_the_environment_beats_the_configured_one(world: World) -> None:
    world.put()
    thread = unbound_thread(world)
    set_setting(world.store, "uwf.agent", "configured", cwd=world.caller.cwd)
    world.reopen()

    assert played_by(world, thread, default="of-the-environment") == "of-the-environment"
    assert played_by(world, thread) == "configured"


Fetched = tuple[World, ThreadId]


def fetch_all(world: World, git: Git, tmp_path: Path) -> World:
    """Return another store, into which all of the first was fetched."""
    other = create_store(str(tmp_path / "other.git"))
    git("fetch", "-q", world.store.path, "refs/*:refs/*", cwd=Path(other.path))
    store = open_store(other.path, environ=os.environ)
    return World(world.place, store, world.caller, world.new_id)


@pytest.fixture
def fetched(world: World, git: Git, tmp_path: Path) -> Fetched:
    """Return a second store, into which a thread and its workflow were fetched."""
    thread = world.begun(BOUND, "checker=typed there")
    return fetch_all(world, git, tmp_path), thread


def test_command_that_only_came_with_a_fetched_thread_is_refused(fetched: Fetched) -> None:
    world, thread = fetched

    with refuses("agent-not-trusted") as caught:
        world.step(thread)
    assert "--workdir PATH --trust`" in (caught.value.hint or "")
    place = world.place / "it's here"
    place.mkdir()
    asked = f"`uwf thread step {thread} --workdir {quote_path(str(place))} --trust`"
    for known in (None, str(world.place), "/gone"):
        if known is not None:
            set_workdir(world.store, thread, known)
        with refuses("agent-not-trusted") as caught:
            world.step(thread, workdir=str(place))
        assert asked in (caught.value.hint or "")
    assert caught.value.exit_status == 1
    assert "from-the-workflow" in caught.value.message

    with refuses("agent-not-trusted") as caught:
        world.step(thread)
    assert "--workdir PATH --trust`" in (caught.value.hint or "")
    set_workdir(world.store, thread, str(place))
    with refuses("agent-not-trusted") as caught:
        world.step(thread, workdir=str(place))
    assert f"`uwf thread step {thread} --trust`" in (caught.value.hint or "")
    assert world.snapshot(thread).record.event == "start"


def test_trust_is_remembered_though_a_directory_is_still_wanted(fetched: Fetched) -> None:
    """Each of the two refusals names one option; typed one after the other they are enough."""
    world, thread = fetched
    with refuses("workdir-unknown"):
        world.step(thread, trust=True)
    world.reopen()
    assert world.step(thread, workdir=str(world.place)).role is not None


def test_settings_of_one_s_own_do_not_let_a_foreign_command_run(fetched: Fetched) -> None:
    world, thread = fetched

    with refuses("agent-not-trusted", match="from-the-workflow"):
        world.step(thread, command='{"timeout": 9}', workdir=str(world.place))


def test_fetched_thread_asks_for_a_work_directory_once(fetched: Fetched) -> None:
    world, thread = fetched

    with refuses("workdir-unknown") as caught:
        world.step(thread, command="mine")
    assert "--workdir" in (caught.value.hint or "")
    world.step(thread, command="mine", workdir=str(world.place))

    assert world.step(thread, command="mine").depth == 2


def begun_in(world: World, workdir: str, *agents: str) -> ThreadId:
    return world.begin(StartRequest("demo", "Do it.", agents, workdir=workdir))


def test_command_trusted_in_one_project_is_another_file_in_the_next(world: World) -> None:
    mine, theirs = (str(world.place / name) for name in ("mine", "theirs"))
    for place in (mine, theirs):
        Path(place, "agents").mkdir(parents=True)
        write_program(Path(place, "agents", "all"), "")
    world.put()
    assert world.step(begun_in(world, mine, "agents/all")).depth == 1
    Path(theirs, ".workflows").mkdir()
    Path(theirs, ".workflows", "demo.yaml").write_text(DEMO + "defaultAgent: agents/all\n")
    world.caller = world.caller._replace(cwd=theirs)
    thread = begun_in(world, theirs)

    with refuses("agent-not-trusted", match=f"agents/all \\(here {theirs}/agents/all\\)"):
        world.step(thread)

    assert world.step(thread, trust=True).depth == 1
    assert world.step(thread).depth == 2


@pytest.mark.parametrize("trusts", [False, True])
def test_trust_is_not_asked_for_a_file_that_is_not_there(world: World, *, trusts: bool) -> None:
    world.put()
    thread = unbound_thread(world)
    world.configure("uwf.agent", "agents/all")

    with refuses("agent-not-there", match="'agents/all' does not exist") as caught:
        world.step(thread, trust=trusts)
    assert f"no file {world.place}/agents/all" in (caught.value.hint or "")
    assert "--workdir PATH" in (caught.value.hint or "")
    assert list_trusted(world.store) == []

    (world.place / "agents").mkdir()
    world.program("", name="agents/all")
    with refuses("agent-not-trusted"):
        world.step(thread)


def test_program_in_a_worktree_is_not_looked_for_beside_it(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.start("build/agent", workflow=world.put(PAIR).workflow)
    untrust_agents(world.store, command="build/agent")
    world.step(thread)
    branch = children(world.snapshot(thread))[0]
    with refuses("agent-not-trusted"):
        world.step(branch)
    assert played_by(world, branch, trust=True) == "build/agent"


def test_unbound_role_does_not_run_what_the_store_config_names(world: World) -> None:
    world.put()
    thread = unbound_thread(world)
    world.configure("uwf.agent", "theirs")
    with refuses("agent-not-trusted", match="theirs"):
        world.step(thread)

    assert played_by(world, thread, trust=True) == "theirs"
    assert played_by(world, thread) == "theirs"


def test_command_of_another_file_is_not_the_shipped_one(world: World) -> None:
    source = DEMO.replace("name: demo", "name: check-repo")
    world.put(source + "defaultAgent: uwf-shell 'rm -rf src'\n")
    untrust_agents(world.store, command="uwf-shell 'rm -rf src'")
    with refuses("agent-not-trusted"):
        world.step(world.begin(StartRequest("check-repo", "Do it.")))


# A check that came from elsewhere runs only if it is trusted here, like an agent.

CHECK = {"command": "touch checked"}


def test_check_of_a_fetched_thread_does_not_run_until_it_is_trusted(
    world: World, tmp_path: Path, git: Git
) -> None:
    thread = world.begun(CHECKED.replace("CHECKS", CHECK["command"]), world.program(ANSWER))
    there = fetch_all(world, git, tmp_path)
    paid = there.program(f"touch paid; {ANSWER}")
    with refuses("check-not-trusted", match="touch checked") as caught:
        there.step(thread, agent_player(None), command=paid, workdir=str(world.place))
    assert "--trust" in (caught.value.hint or "")
    assert not (world.place / "paid").exists()

    there.step(thread, agent_player(None), command=paid, trust=True, workdir=str(world.place))

    assert (world.place / "checked").exists()
    assert is_trusted(there.store, CHECK, str(world.place))


# Values of `--agent`; the tests of `bind_roles` try what they lead to.

NOTHING = GitConfig({})


def test_adapter_that_is_told_its_program_is_believed(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"]}
    where = {
        "by a word": ("uwf-hermes --program ./it", environ, NOTHING),
        "by a variable": ("uwf-hermes", environ | {"UWF_HERMES_PROGRAM": "./it"}, NOTHING),
        "by config": ("uwf-hermes", environ, GitConfig({"uwf.hermes.program": ["./it"]})),
        "on the path": ("uwf-hermes", {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, NOTHING),
    }
    write_program(tmp_path / "hermes", "")

    for command, environ, config in where.values():
        agents = {"writer": {"command": command}}
        assert find_missing_programs(agents, environ, str(tmp_path), config) == []


def test_command_replaces_an_agent_unless_its_settings_are_kept() -> None:
    base = {"command": "old", "timeout": 3}
    typed = [TypedAgent(None, {"command": "new"}), TypedAgent("r", {"retries": 1})]

    def laid(*, keeps: bool) -> tuple[dict[str, Any], bool]:
        return lay_over("r", base, typed, may_run=False, keeps=keeps)

    assert laid(keeps=False) == ({"command": "new", "retries": 1}, True)
    assert laid(keeps=True) == ({"command": "new", "timeout": 3, "retries": 1}, True)
    only = [TypedAgent("r", {"retries": 1})]
    assert not lay_over("r", base, only, may_run=False, keeps=True)[1]
    assert lay_over("r", base, only, may_run=True, keeps=True)[1]


def test_settings_need_a_command_to_be_laid_over() -> None:
    with refuses("command-unnamed"):
        lay_over("r", None, [TypedAgent("r", {"retries": 1})], may_run=True, keeps=False)


# Binding roles to agents; lifecycle/test_start.py tests what a thread begins with.


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


@pytest.mark.parametrize("role", ["", "checker="])
def test_settings_are_kept_that_are_typed_before_their_command(world: World, role: str) -> None:
    texts = (role + '{"timeout": 5}', f"{role}mine")
    for each in (texts, texts[::-1]):
        bound = bind_roles(world.store, demo(world), typed=each)
        assert bound.agents["checker"] == {"command": "mine", "timeout": 5}


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


PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
ADAPTERS = {
    command: script.split(":")
    for command, script in PROJECT["scripts"].items()
    if script.startswith("uwf_git.agentkit.adapters.")
}


ADAPTED = [agent for agent in KNOWN if agent.command != PERSON]


@pytest.mark.parametrize("agent", ADAPTED, ids=lambda agent: agent.command)
def test_table_says_what_the_adapters_say(agent: KnownAgent) -> None:
    name = agent.command.removeprefix("uwf-")
    file, main = ADAPTERS[agent.command]
    module = importlib.import_module(file)
    assert main in {"main", f"{name}_main"}
    assert callable(getattr(module, main))
    there = {each.name: each for each in vars(module).values() if isinstance(each, CommandAdapter)}
    assert {f"uwf-{each}" for each in there} <= ADAPTERS.keys()
    adapter = there.get(name)
    assert (adapter is not None) == (bool(agent.programs) or name == "cli")
    if adapter is not None:
        assert (adapter.programs or (name,))[: len(agent.programs)] == agent.programs
        assert agent.install in adapter.install


def test_every_adapter_is_in_the_table() -> None:
    folder = importlib.import_module("uwf_git.agentkit.adapters")
    files = {f"{folder.__name__}.{each.name}" for each in iter_modules(folder.__path__)}
    assert {file for file, _ in ADAPTERS.values()} == files - {f"{folder.__name__}.__main__"}
    # uwf-check judges what others did.
    assert ADAPTERS.keys() - {"uwf-check"} == {agent.command for agent in ADAPTED}


def test_programs_are_found_with_their_versions(tmp_path: Path) -> None:
    says_version = 'test "$1" = --version && echo "2.1.329 (Claude Code)"'
    claude = write_program(tmp_path / "claude", says_version)
    write_program(tmp_path / "codex", "echo codex-cli 0.169.0; exit 1")
    write_program(tmp_path / "agent", "echo no number")
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
    path = write_program(tmp_path / "claude", "echo 2.1.329")

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
