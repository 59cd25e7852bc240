"""New threads: the workflows that may be started here, and the start, with trusted agents only."""

from typing import Any

from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.commands.lifecycle.start_trusted import (
    check_agents,
    find_agent_problem,
    find_agents,
    find_startable,
    list_startable,
    name_agent,
)
from uwf_git.commands.turn.bind_roles import bind_roles, find_played
from uwf_git.commands.workflow.graph import view_moves
from uwf_git.library.handle import TaskHandle
from uwf_git.library.starting import to_agent_words
from uwf_git.model.workflow import parse_role
from uwf_git.web.ui.answers import Asked, Created, Exact, Picture, check_names, take_text
from uwf_git.web.ui.controls import check_go, go_on
from uwf_git.web.ui.offered import read_agents
from uwf_git.web.ui.site import Site
from uwf_git.web.ui.thread_view import draw


def list_registered(site: Site, _asked: Asked) -> dict[str, Any]:
    return {"workflows": list_startable(site.open())}


def view_workflow(site: Site, asked: Asked) -> dict[str, Any]:
    store = site.open()
    found = find_startable(store, asked.params["name"])
    workflow, nodes = found.workflow, {node.hash: node for node in found.closure}
    played = find_played(workflow, found.closure)
    bound = bind_roles(store, played, default=site.place.agent, directory=site.place.cwd)
    here = site.here(store)
    offered = find_agents(here, here.cwd)

    def view_agent(role: str) -> dict[str, Any]:
        agent = bound.agents.get(role)
        if agent is None:
            return {"agent": None, "agentId": None, "problem": None}
        return {
            "agent": agent["command"],
            "agentId": name_agent(agent) if name_agent(agent) in offered else None,
            "problem": find_agent_problem(here, agent, workflow.name, bound.typed),
        }

    return {
        "name": workflow.name,
        "workflow": workflow.hash,
        "description": workflow.description,
        "needsPrompt": workflow.flow is None,
        "roles": [
            {
                "id": Exact(role),
                "name": role,
                "description": parse_role(nodes[played.roles[role]]).description,
                **view_agent(role),
            }
            for role in played.roles
        ],
    }


def draw_workflow(site: Site, asked: Asked) -> Picture:
    found = find_startable(site.open(), asked.params["name"])
    nodes = {node.hash: node for node in found.closure}
    return draw(site, view_moves(found.workflow, nodes.__getitem__))


def start_new(site: Site, asked: Asked) -> Created:
    """Start a thread; with `go` it is driven in the background."""
    body, place = asked.body, site.place
    check_names(body, "workflow", "prompt", "agents", "go")
    goes = check_go(body)
    with place.writing() as store:
        found = find_startable(store, take_text(body, "workflow", needed=True))
        roles = find_played(found.workflow, found.closure).roles
        agents = read_agents(site, store, body.get("agents"), roles, place.cwd)
        words = to_agent_words(agents)
        check_agents(site.here(store), found, words, is_driven=goes)
        request = StartRequest(
            found.workflow.name,
            take_text(body, "prompt") or None,
            words,
            place.agent,
            needs_agents=goes,
            found=found,
        )
        started = start_thread(store, place.caller, request, thread=site.new_thread_id())
    return Created(go_on(site, TaskHandle(place, started.thread), body))
