"""Which agents the page offers, and takes."""

from commands.world import World
from refusing import refuses
from web.ui.asking import Ask

from uwf_git.commands.start import find_agents
from uwf_git.store.threads.local_files import set_workdir
from uwf_git.store.trust import trust_agents
from uwf_git.web.ui.site import Site


def test_agent_that_is_trusted_elsewhere_is_no_agent_of_a_thread(
    ask: Ask, world: World, site: Site
) -> None:
    thread = world.begun()
    (world.place / "agent").touch()
    trust_agents(world.store, [{"command": "./agent"}], world.caller.cwd)
    offered = find_agents(site.here(world.store), world.caller.cwd)
    trusted = next(name for name, agent in offered.items() if agent["command"] == "./agent")
    set_workdir(world.store, thread, str(world.place.parent))

    assert trusted not in {row["id"] for row in ask("GET", "/api/agents", thread=thread)["agents"]}
    with refuses("bad-body", match="no agent that is trusted here"):
        ask("POST", f"/api/threads/{thread}/amend", {"agents": {"writer": trusted}})
