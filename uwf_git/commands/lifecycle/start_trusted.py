"""What may be started from a page or a chat, where nobody reads a command before it runs.

Workflows of the store, fetched or not, or that come with uwf, never from a file of the project;
agents that are trusted, or the user's own.
"""

import hashlib
import json
from collections.abc import Collection
from typing import Any, NamedTuple

from uwf_git.commands.turn.agent_words import CONFIG_NAME, FUNCTION, PERSON
from uwf_git.commands.turn.bind_roles import bind_roles, find_played
from uwf_git.commands.turn.choose_agent import may_run
from uwf_git.commands.workflow.find import (
    FoundWorkflow,
    find_shipped_workflow,
    find_workflow,
    list_workflows,
)
from uwf_git.errors import Refused
from uwf_git.store.store import Store
from uwf_git.store.trust import is_set_by_store, is_trusted, list_trusted
from uwf_git.store.workflows.registry import list_names, list_shipped

Agent = dict[str, Any]

PERSON_AGENT: Agent = {"command": PERSON}


class Here(NamedTuple):
    store: Store
    cwd: str
    """Where the agents of new threads run."""

    agent: str | None
    """$UWF_AGENT: the user's own default agent, before the configured one."""


def list_startable(store: Store) -> list[dict[str, Any]]:
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
    return rows


def find_startable(store: Store, name: str) -> FoundWorkflow:
    """Find a registered workflow, else a shipped workflow; never a file of the project."""
    if name not in list_names(store) and any(file.name == name for file in list_shipped()):
        return find_shipped_workflow(store, name)
    return find_workflow(store, name)


def find_agents(here: Here, directory: str) -> dict[str, Agent]:
    agents = [
        agent
        for each in list_trusted(here.store)
        if (agent := each.agent) is not None
        and isinstance(agent.get("command"), str)
        and agent["command"] != PERSON
        and not agent["command"].startswith(FUNCTION)
        # A setting is trusted in its place only.
        and "setting" not in agent
        and is_trusted(here.store, agent, directory)
    ]
    default = find_default(here, directory)
    agents += [] if default is None else [default]
    return {name_agent(agent): agent for agent in (*agents, PERSON_AGENT)}


def find_default(here: Here, directory: str) -> Agent | None:
    """Return the default agent, if it may run: the user's own, or a trusted one of the store."""
    command = here.agent or here.store.config.get(CONFIG_NAME)
    if not command:
        return None
    agent = {"command": command}
    is_own = bool(here.agent) or not is_set_by_store(here.store, CONFIG_NAME)
    may_run = is_own and directory == here.cwd
    return agent if may_run or is_trusted(here.store, agent, directory) else None


def name_agent(agent: Agent) -> str:
    return hashlib.sha256(json.dumps(agent, sort_keys=True).encode()).hexdigest()[:16]


def check_agents(
    here: Here, found: FoundWorkflow, words: tuple[str, ...] = (), *, is_driven: bool = True
) -> None:
    """Check that the agent of each role may run here; if it *is_driven*, that each role has one."""
    played = find_played(found.workflow, found.closure)
    bound = bind_roles(here.store, played, typed=words, default=here.agent, directory=here.cwd)
    own = find_agents(here, here.cwd).values()
    name = found.workflow.name
    problems = {
        role: find_agent_problem(here, agent, name, own) for role, agent in bound.agents.items()
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


def find_agent_problem(
    here: Here, agent: Agent, workflow: str, own: Collection[Agent]
) -> str | None:
    """Say why *agent* cannot play here; None if it can."""
    command = agent["command"]
    if command.startswith(FUNCTION):
        return f"{command} plays only in the program that has this function"
    if agent in own or agent == PERSON_AGENT:
        return None
    if may_run(here.store, agent, workflow=workflow, workdir=here.cwd):
        return None
    extra = f" with {json.dumps(agent['env'])}" if agent.get("env") else ""
    return f"{command}{extra} is not trusted here"
