"""What a page or a chat may start: workflows by name, agents that somebody has read."""

import pytest
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.commands.lifecycle.start import Here, check_agents, find_startable, list_startable
from uwf_git.errors import UwfError
from uwf_git.store.trust import trust_agents


def test_workflow_of_the_user_comes_before_the_shipped_one_of_that_name(world: World) -> None:
    world.put(DEMO.replace("demo", "route", 1))

    rows = {row["name"]: row["isShipped"] for row in list_startable(world.store)}
    assert not rows["route"]
    assert rows["approve"]
    assert {"writer", "checker"} == set(find_startable(world.store, "route").workflow.roles)


@pytest.mark.parametrize("name", ["./demo.yaml", "demo.yaml", "local", "draft; rm -rf /"])
def test_file_is_no_name(world: World, name: str) -> None:
    folder = world.place / ".uwf" / "workflows"
    folder.mkdir(parents=True)
    for file in (folder / "local.yaml", world.place / "demo.yaml"):
        file.write_text(DEMO)
    with pytest.raises(UwfError):
        find_startable(world.store, name)


def test_command_plays_once_it_is_trusted(world: World) -> None:
    world.put(DEMO)
    words = ("checker=./elsewhere",)
    found = find_startable(world.store, "demo")
    here = Here(world.store, world.caller.cwd, "my-agent")

    with refuses("not-started-here", match="role checker: ./elsewhere is not trusted here"):
        check_agents(here, found, words)
    trust_agents(world.store, [{"command": "./elsewhere"}], world.caller.cwd)
    check_agents(here, found, words)
    with refuses("not-started-here", match="role writer: it has no agent"):
        check_agents(here._replace(agent=None), found, words)
