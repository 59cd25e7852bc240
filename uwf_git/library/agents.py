"""Agents of tasks: what a caller may give, as `--agent` takes it, and functions as agents."""

import json
from collections.abc import Mapping
from typing import Any

from uwf_git.commands.turn.bind_roles import find_played
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.errors import BadUsage
from uwf_git.library.place import Place
from uwf_git.library.players import PREFIX

AgentsByRole = Mapping[str, str | Mapping[str, Any]]
"""A command by role, or settings: ``{"command": …, "protocol": …, "timeout": s, "env": {…}}``."""


def to_agent_words(agents: AgentsByRole | str | None) -> tuple[str, ...]:
    """Return agents as `--agent` takes them: a command for every role, or ROLE=… for some.

    Raises:
        BadUsage: settings cannot be written as JSON.
    """
    if agents is None:
        return ()
    if isinstance(agents, str):
        return (agents,)
    return tuple(
        f"{role}={agent if isinstance(agent, str) else _write_settings(role, agent)}"
        for role, agent in agents.items()
    )


def _write_settings(role: str, settings: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(settings), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadUsage(
            f"the agent of {role} cannot be written as JSON: {error!s}",
            code="bad-settings",
            hint='give a command, or a dict such as {"command": "uwf-claude", "timeout": 60}',
            role=role,
        ) from None


def new_agents(place: Place) -> tuple[str | None, dict[str, str]]:
    """Return who plays roles that a task gets later: the default agent, and each function."""
    return place.agent, _list_players(place)


def _list_players(place: Place) -> dict[str, str]:
    return {name: PREFIX + name for name in place.players}


def list_player_words(place: Place, workflow: str) -> tuple[str, ...]:
    """Bind the functions to the roles of their names; later words for a role override these."""
    if not place.players:
        return ()
    found = find_workflow(place.open(), workflow, cwd=place.cwd)
    roles = find_played(found.workflow, found.closure).roles
    agents = _list_players(place)
    return tuple(f"{role}={agents[role]}" for role in roles if role in agents)
