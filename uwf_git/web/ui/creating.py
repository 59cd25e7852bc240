"""New threads: the workflows that may be started here, and the start.

Only what is trusted here is taken: the agents that are offered, and what comes with uwf.
"""

import json
from typing import Any

from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.commands.turn.bind_roles import bind_roles, find_played
from uwf_git.commands.turn.choose_agent import may_run
from uwf_git.commands.workflow.find import (
    FoundWorkflow,
    find_shipped_workflow,
    find_workflow,
    list_workflows,
)
from uwf_git.commands.workflow.graph import view_moves
from uwf_git.errors import Refused
from uwf_git.library.handle import TaskHandle
from uwf_git.library.players import PREFIX
from uwf_git.library.starting import to_agent_words
from uwf_git.model.workflow import parse_role
from uwf_git.store.store import Store
from uwf_git.store.workflows.registry import list_names, list_shipped
from uwf_git.web.ui.answers import Asked, Created, Exact, Picture, check_names, take_text
from uwf_git.web.ui.controls import check_go, go_on
from uwf_git.web.ui.offered import PERSON_AGENT, Agent, find_agents, name_agent, read_agents
from uwf_git.web.ui.site import Site
from uwf_git.web.ui.thread_view import draw


def list_registered(site: Site, _asked: Asked) -> dict[str, Any]:
    """List the workflows of the store, then those that come with uwf."""
    store = site.open()
    rows = [
        {**{name: row.get(name) for name in ("name", "workflow", "description")},
         "isShipped": False, "problem": row.get("error")}
        for row in list_workflows(store)
    ]  # fmt: skip
    taken = {*list_names(store)}
    for file in list_shipped():
        if file.name not in taken:
            found = find_shipped_workflow(store, file.name).workflow
            rows.append(
                {
                    "name": file.name,
                    "workflow": found.hash,
                    "description": found.description,
                    "isShipped": True,
                    "problem": None,
                }
            )
    return {"workflows": rows}


def _find(store: Store, name: str) -> FoundWorkflow:
    """Find a registered workflow, else one that comes with uwf; never a file of the project."""
    if name not in list_names(store) and any(file.name == name for file in list_shipped()):
        return find_shipped_workflow(store, name)
    return find_workflow(store, name)


def view_workflow(site: Site, asked: Asked) -> dict[str, Any]:
    """Return a workflow, and who would play its roles."""
    store = site.open()
    found = _find(store, asked.params["name"])
    workflow, nodes = found.workflow, {node.hash: node for node in found.closure}
    played = find_played(workflow, found.closure)
    bound = bind_roles(store, played, default=site.place.agent, directory=site.place.cwd)
    offered = find_agents(site, store, site.place.cwd)

    def view_agent(role: str) -> dict[str, Any]:
        agent = bound.agents.get(role)
        if agent is None:
            return {"agent": None, "agentId": None, "problem": None}
        return {
            "agent": agent["command"],
            "agentId": name_agent(agent) if name_agent(agent) in offered else None,
            "problem": _find_problem(site, store, agent, workflow.name, bound.typed),
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
    """Return the picture of a workflow."""
    found = _find(site.open(), asked.params["name"])
    nodes = {node.hash: node for node in found.closure}
    return draw(site, view_moves(found.workflow, nodes.__getitem__))


def start_new(site: Site, asked: Asked) -> Created:
    """Start a thread; with `go` it is driven in the background."""
    body, place = asked.body, site.place
    check_names(body, "workflow", "prompt", "agents", "go")
    goes = check_go(body)
    with place.writing() as store:
        found = _find(store, take_text(body, "workflow", needed=True))
        roles = find_played(found.workflow, found.closure).roles
        agents = read_agents(site, store, body.get("agents"), roles, place.cwd)
        words = to_agent_words(agents)
        _check_agents(site, store, found, words, is_driven=goes)
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


def _check_agents(
    site: Site, store: Store, found: FoundWorkflow, words: tuple[str, ...], *, is_driven: bool
) -> None:
    """Check that the agent of each role may run here; if it *is_driven*, that each role has one."""
    played, place = find_played(found.workflow, found.closure), site.place
    bound = bind_roles(store, played, typed=words, default=place.agent, directory=place.cwd)
    own = [*find_agents(site, store, place.cwd).values()]
    name = found.workflow.name
    problems = {
        role: _find_problem(site, store, agent, name, own) for role, agent in bound.agents.items()
    }
    if is_driven:
        problems |= {role: "it has no agent" for role in played.roles if role not in bound.agents}
    wrong = {role: problem for role, problem in problems.items() if problem is not None}
    if wrong:
        told = "; ".join(f"role {role}: {problem}" for role, problem in wrong.items())
        raise Refused(
            f"no thread was made: {told}",
            code="not-started-here",
            hint="choose an agent for each of these roles; a command that you have read and that "
            f"may run here is trusted by `uwf agent trust --workflow {name}`",
            roles=[*wrong],
            details=[
                {"pointer": f"/agents/{role}", "message": problem}
                for role, problem in wrong.items()
            ],
        )


def _find_problem(
    site: Site, store: Store, agent: Agent, workflow: str, own: list[Agent]
) -> str | None:
    """Say why *agent* cannot play here; None if it can."""
    command = agent["command"]
    if command.startswith(PREFIX):
        return f"{command} plays only in the program that has this function"
    if agent in own or agent == PERSON_AGENT:
        return None
    if may_run(store, agent, workflow=workflow, workdir=site.place.cwd):
        return None
    extra = f" with {json.dumps(agent['env'])}" if agent.get("env") else ""
    return f"{command}{extra} is not trusted here"
