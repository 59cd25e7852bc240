"""Which agent plays a role, and which may run: 000 section 1.3, and the trust rule."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.world import DEMO, World, content_player
from refusing import refuses

from uwf_git.commands.admin import set_setting
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.store import create_store, open_store
from uwf_git.store.threads.local_files import set_workdir
from uwf_git.store.trust import untrust_agents

BOUND = DEMO + "defaultAgent: from-the-workflow\n"

Commands = list[str]


def unbound_thread(world: World) -> ThreadId:
    """Start a thread without naming an agent."""
    return world.begin(StartRequest("demo", "Do it."))


def played_by(world: World, thread: str, **choice: Any) -> str:
    """Take a step and return the command of its agent."""
    seen: Commands = []

    def play(turn: Turn) -> Played:
        seen.append(turn.agent.payload["command"])
        return content_player(turn)

    world.step(thread, play, **choice)
    return seen[0]


def configure(world: World, command: str) -> None:
    set_setting(world.store, "uwf.agent", command, cwd=world.caller.cwd)
    world.reopen()


def test_agent_of_the_step_may_name_its_role(world: World) -> None:
    thread = world.begun()

    assert played_by(world, thread, command="writer=mine") == "mine"
    with refuses("role-not-next", match=r"writer is not next .* the turn of checker"):
        world.step(thread, command="writer=mine")
    assert world.snapshot(thread).record.depth == 1


def test_default_of_the_environment_beats_the_configured_one(world: World) -> None:
    world.put()
    thread = unbound_thread(world)
    configure(world, "configured")

    assert played_by(world, thread, default="of-the-environment") == "of-the-environment"
    assert played_by(world, thread) == "configured"


@pytest.fixture
def fetched(world: World, git: Callable[..., str], tmp_path: Path) -> tuple[World, ThreadId]:
    """Return a second store, into which a thread and its workflow were fetched."""
    thread = start_thread(
        world.store,
        world.caller,
        StartRequest(world.put(BOUND).workflow, "Do it.", ("checker=typed there",)),
        thread=world.new_id(),
    ).thread
    other = create_store(str(tmp_path / "other.git"))
    git("fetch", "-q", world.store.path, "refs/*:refs/*", cwd=Path(other.path))
    store = open_store(other.path, environ=os.environ)
    return World(world.place, store, world.caller, world.new_id), thread


def test_command_that_only_came_with_a_fetched_thread_is_refused(
    fetched: tuple[World, ThreadId],
) -> None:
    world, thread = fetched

    with refuses("agent-not-trusted") as caught:
        world.step(thread)
    assert "--workdir PATH --trust`" in (caught.value.hint or "")
    with refuses("agent-not-trusted") as caught:
        world.step(thread, workdir=str(world.place))

    assert caught.value.exit_status == 1
    assert "from-the-workflow" in caught.value.message
    assert f"`uwf thread step {thread} --trust`" in (caught.value.hint or "")
    set_workdir(world.store, thread, "/gone")
    with refuses("agent-not-trusted") as caught:
        world.step(thread)
    assert "--workdir PATH --trust`" in (caught.value.hint or "")
    assert world.snapshot(thread).record.event == "start"


def test_trust_is_remembered_though_a_directory_is_still_wanted(
    fetched: tuple[World, ThreadId],
) -> None:
    """Each of the two refusals names one option; typed one after the other they are enough."""
    world, thread = fetched
    with refuses("workdir-unknown"):
        world.step(thread, trust=True)
    world.reopen()
    assert world.step(thread, workdir=str(world.place)).role is not None


def test_settings_of_one_s_own_do_not_let_a_foreign_command_run(
    fetched: tuple[World, ThreadId],
) -> None:
    world, thread = fetched

    with refuses("agent-not-trusted", match="from-the-workflow"):
        world.step(thread, command='{"timeout": 9}', workdir=str(world.place))


def test_fetched_thread_asks_for_a_work_directory_once(fetched: tuple[World, ThreadId]) -> None:
    world, thread = fetched

    with refuses("workdir-unknown") as caught:
        world.step(thread, command="mine")
    assert "--workdir" in (caught.value.hint or "")
    world.step(thread, command="mine", workdir=str(world.place))

    assert world.step(thread, command="mine").depth == 2


def two_projects(world: World) -> tuple[str, str]:
    """Make two projects, each with a program of its own at `agents/all`."""
    places = [world.place / name / "agents" for name in ("mine", "theirs")]
    for place in places:
        place.mkdir(parents=True)
        (place / "all").touch()
    return str(places[0].parent), str(places[1].parent)


def begun_in(world: World, workdir: str, *agents: str) -> ThreadId:
    return world.begin(StartRequest("demo", "Do it.", agents, workdir=workdir))


def test_command_trusted_in_one_project_is_another_file_in_the_next(world: World) -> None:
    mine, theirs = two_projects(world)
    world.put()
    assert world.step(begun_in(world, mine, "agents/all")).depth == 1
    (world.place / "theirs" / ".workflows").mkdir()
    Path(theirs, ".workflows", "demo.yaml").write_text(DEMO + "defaultAgent: agents/all\n")
    world.caller = world.caller._replace(cwd=theirs)
    thread = begun_in(world, theirs)

    with refuses("agent-not-trusted", match=f"agents/all \\(here {theirs}/agents/all\\)"):
        world.step(thread)

    assert world.step(thread, trust=True).depth == 1
    assert world.step(thread).depth == 2


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
        world.step(begun_of(world, "check-repo"))


def begun_of(world: World, workflow: str) -> ThreadId:
    return world.begin(StartRequest(workflow, "Do it."))
