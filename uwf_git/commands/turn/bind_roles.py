"""Bind roles to agents: `--agent`, the workflow's overrides, its default, the configured default.

Source: DESIGN 4.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.turn.choose_agent import CONFIG_NAME
from uwf_git.errors import Refused
from uwf_git.model.workflow import Workflow
from uwf_git.store.store import Store

_ROLE_WORD = re.compile(r"[^\s/=\"'\\]+")


class NoSuchRole(Refused):
    """`--agent ROLE=CMD` names a role that the workflow does not have."""

    code = "no-such-role"

    def __init__(self, role: str, workflow: Workflow) -> None:
        super().__init__(
            f"workflow {workflow.name} has no role {role}",
            hint=f"its roles are {', '.join(workflow.roles)}",
            role=role,
            roles=list(workflow.roles),
        )


class Bound(NamedTuple):
    """The agents of a workflow's roles."""

    agents: dict[str, dict[str, Any]]
    """The AgentConfig payload of each role that has one."""

    typed: list[dict[str, Any]]
    """The agents that were typed or configured here, so that they may run here."""


def bind_roles(
    store: Store, workflow: Workflow, *, typed: Iterable[str] = (), default: str | None = None
) -> Bound:
    """Return the agent of each role of *workflow* that has one.

    *typed* is ``CMD`` for every role, or ``ROLE=CMD`` for one; *default* comes before the
    configured agent.

    Raises:
        NoSuchRole: *typed* names a role that the workflow does not have.
        BadCommand: a command cannot be split into words.
    """
    command = default or store.config.get(CONFIG_NAME)
    configured = {"command": command} if command else None
    for_all = workflow.default_agent or configured
    binding = dict.fromkeys(workflow.roles, for_all)
    binding |= {role: agent for role, agent in workflow.agent_overrides.items() if role in binding}
    said = bind_typed(workflow, typed)
    binding |= said.agents
    if configured and configured in binding.values():
        split_command(configured["command"])
        said.typed.append(configured)
    agents = {role: agent for role, agent in binding.items() if agent is not None}
    return Bound(agents, said.typed)


def bind_typed(workflow: Workflow, typed: Iterable[str]) -> Bound:
    """Return the agents that were typed, without defaults."""
    agents: dict[str, dict[str, Any]] = {}
    said: list[dict[str, Any]] = []
    # ``CMD`` for every role first, so that ``ROLE=CMD`` overrides it.
    for text in sorted(typed, key=lambda each: _split_role(each, workflow)[0] or ""):
        role, command = _split_role(text, workflow)
        split_command(command)
        agent = {"command": command}
        said.append(agent)
        agents |= dict.fromkeys(workflow.roles if role is None else [role], agent)
    return Bound(agents, said)


def _split_role(text: str, workflow: Workflow) -> tuple[str | None, str]:
    """Read ``ROLE=CMD`` or ``CMD``; a command may contain ``=`` as well."""
    word, equals, command = text.partition("=")
    if not equals:
        return None, text
    if word in workflow.roles:
        return word, command
    if _ROLE_WORD.fullmatch(word):
        # No command begins like this (only a shell reads NAME=VALUE first): a role was meant.
        raise NoSuchRole(word, workflow)
    return None, text
