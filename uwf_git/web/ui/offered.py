"""The agents that the page offers in a directory, and takes: by an id, never a typed command.

They are what is trusted there, the user's default agent in the server's own directory, and a
person; no function that plays in another program.
"""

import json
from collections.abc import Collection
from typing import Any

from uwf_git.commands.lifecycle.start_trusted import Agent, find_agents, find_default, name_agent
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_thread
from uwf_git.store.threads.local_files import find_workdir
from uwf_git.web.ui.answers import Asked, bad_body
from uwf_git.web.ui.site import Site


def list_agents(site: Site, asked: Asked) -> dict[str, Any]:
    store, directory = site.open(), site.place.cwd
    if "thread" in asked.query:
        directory = find_directory(site, store, resolve_thread(store, asked.query["thread"]))
    default = find_default(site.here(store), directory)
    rows = [
        {
            "id": name,
            "command": agent["command"],
            "settings": ", ".join(
                f"{key} {json.dumps(value)}" for key, value in agent.items() if key != "command"
            ),
        }
        for name, agent in find_agents(site.here(store), directory).items()
    ]
    return {"agents": rows, "default": None if default is None else name_agent(default)}


def find_directory(site: Site, store: Store, thread: ThreadId) -> str:
    return find_workdir(store, thread) or site.place.cwd


def find_agent(site: Site, store: Store, name: str, field: str) -> Agent:
    return _find_one(find_agents(site.here(store), site.place.cwd), name, field)


def read_agents(
    site: Site, store: Store, given: Any, roles: Collection[str], directory: str
) -> dict[str, Agent]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise bad_body("agents", "an object of agent ids is needed, by role")
    for role in given:
        # As a word of `--agent` another name may be a command.
        if role not in roles:
            raise bad_body(f"agents/{role}", "the workflow has no such role")
    agents = find_agents(site.here(store), directory)
    return {role: _find_one(agents, name, f"agents/{role}") for role, name in given.items()}


def _find_one(agents: dict[str, Agent], name: str, field: str) -> Agent:
    if name not in agents:
        raise bad_body(field, "no agent that is trusted here has this id")
    return agents[name]
