"""New threads: the workflows that may be started here, the agents that may run, and the start.

Only what is trusted here is offered and taken: the list of `uwf agent trusted`, the default agent
of the user, a person, and what comes with uwf.
"""

import hashlib
import json
from typing import Any

from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.commands.turn.agent_words import CONFIG_NAME, PERSON
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
from uwf_git.store.trust import is_set_by_store, is_trusted, list_trusted
from uwf_git.store.workflows.registry import list_names, list_shipped
from uwf_git.web.ui.answers import Asked, Created, Exact, Picture, bad_body, check_names, take_text
from uwf_git.web.ui.controls import check_go, go_on
from uwf_git.web.ui.site import Site
from uwf_git.web.ui.thread_view import draw

_Agent = dict[str, Any]
_PERSON: _Agent = {"command": PERSON}


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
    offered = _find_agents(site, store)

    def view_agent(role: str) -> dict[str, Any]:
        agent = bound.agents.get(role)
        if agent is None:
            return {"agent": None, "agentId": None, "problem": None}
        return {
            "agent": agent["command"],
            "agentId": _name(agent) if _name(agent) in offered else None,
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


def list_agents(site: Site, _asked: Asked) -> dict[str, Any]:
    """List the agents that may run here, and a person."""
    store = site.open()
    agents = _find_agents(site, store)
    default = _find_default(site, store)
    rows = [
        {
            "id": name,
            "command": agent["command"],
            "settings": ", ".join(
                f"{key} {json.dumps(value)}" for key, value in agent.items() if key != "command"
            ),
        }
        for name, agent in agents.items()
    ]
    return {"agents": rows, "default": None if default is None else _name(default)}


def start_new(site: Site, asked: Asked) -> Created:
    """Start a thread; with `go` it is driven in the background."""
    body, place = asked.body, site.place
    check_names(body, "workflow", "prompt", "agents", "go")
    goes = check_go(body)
    with place.writing() as store:
        found = _find(store, take_text(body, "workflow", needed=True))
        agents = _read_agents(site, store, body.get("agents"))
        _check_roles(found, agents)
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


def find_agent(site: Site, store: Store, name: str, field: str) -> _Agent:
    """Return the agent of this id."""
    agents = _find_agents(site, store)
    if name not in agents:
        raise bad_body(field, "no agent that is trusted here has this id")
    return agents[name]


def _read_agents(site: Site, store: Store, given: Any) -> dict[str, _Agent]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise bad_body("agents", "an object of agent ids is needed, by role")
    return {role: find_agent(site, store, name, f"agents/{role}") for role, name in given.items()}


def _check_roles(found: FoundWorkflow, agents: dict[str, _Agent]) -> None:
    """Check that *agents* are for roles: as a word of `--agent` another name may be a command."""
    roles = find_played(found.workflow, found.closure).roles
    for name in agents:
        if name not in roles:
            raise bad_body(f"agents/{name}", "the workflow has no such role")


def _check_agents(
    site: Site, store: Store, found: FoundWorkflow, words: tuple[str, ...], *, is_driven: bool
) -> None:
    """Check that the agent of each role may run here; if it *is_driven*, that each role has one."""
    played, place = find_played(found.workflow, found.closure), site.place
    bound = bind_roles(store, played, typed=words, default=place.agent, directory=place.cwd)
    own = [*_find_agents(site, store).values()]
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
    site: Site, store: Store, agent: _Agent, workflow: str, own: list[_Agent]
) -> str | None:
    """Say why *agent* cannot play here; None if it can."""
    command = agent["command"]
    if command.startswith(PREFIX):
        return f"{command} plays only in the program that has this function"
    if agent in own or agent == _PERSON:
        return None
    if may_run(store, agent, workflow=workflow, workdir=site.place.cwd):
        return None
    extra = f" with {json.dumps(agent['env'])}" if agent.get("env") else ""
    return f"{command}{extra} is not trusted here"


def _find_agents(site: Site, store: Store) -> dict[str, _Agent]:
    """Return the agents that may run in the directory of the server, by id."""
    trusted = [each.agent for each in list_trusted(store)]
    agents = [
        agent
        for agent in trusted
        if agent is not None
        and isinstance(agent.get("command"), str)
        and agent["command"] != PERSON
        and not agent["command"].startswith(PREFIX)
        # A setting is trusted in its place only.
        and "setting" not in agent
        and is_trusted(store, agent, site.place.cwd)
    ]
    default = _find_default(site, store)
    agents += [] if default is None else [default]
    return {_name(agent): agent for agent in (*agents, _PERSON)}


def _find_default(site: Site, store: Store) -> _Agent | None:
    """Return the default agent, if it may run: the user's own, or a trusted one of the store."""
    command = site.place.agent or store.config.get(CONFIG_NAME)
    if not command:
        return None
    agent = {"command": command}
    is_own = bool(site.place.agent) or not is_set_by_store(store, CONFIG_NAME)
    return agent if is_own or is_trusted(store, agent, site.place.cwd) else None


def _name(agent: _Agent) -> str:
    return hashlib.sha256(json.dumps(agent, sort_keys=True).encode()).hexdigest()[:16]
