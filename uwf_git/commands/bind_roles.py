"""Binding: which agent plays which role, from what was typed, written and configured.

Owns: the order `--agent`, the workflow's overrides, its default, the configured default (DESIGN 4),
and how ``[ROLE=]CMD`` is read. Knows nothing of: threads, how agents run.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.choose_agent import CONFIG_NAME
from uwf_git.errors import Refused
from uwf_git.model.workflow import Workflow
from uwf_git.store.store import Store

_ROLE_WORD = re.compile(r"[^\s/=\"'\\]+")


class NoSuchRole(Refused):
    """`--agent ROLE=CMD` names a role that the workflow has not."""

    code = "no-such-role"

    def __init__(self, role: str, workflow: Workflow) -> None:
        super().__init__(
            f"workflow {workflow.name} has no role {role}",
            hint=f"its roles are {', '.join(workflow.roles)}",
            role=role,
            roles=list(workflow.roles),
        )


class Bound(NamedTuple):
    """Who plays."""

    agents: dict[str, dict[str, Any]]
    """The AgentConfig payload of each role that has one."""

    typed: list[dict[str, Any]]
    """Those that somebody typed or configured here, so that they may run here."""


def bind_roles(
    store: Store, workflow: Workflow, *, typed: Iterable[str] = (), default: str | None = None
) -> Bound:
    """Give the agent of each role of *workflow* that has one.

    *typed* is ``CMD`` for every role, or ``ROLE=CMD`` for one; *default* stands before the
    configured one.

    Raises:
        NoSuchRole: what was typed is for none of its roles.
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
    """Give the agents that were typed, and of no other role.

    Raises:
        As ``bind_roles``.
    """
    agents: dict[str, dict[str, Any]] = {}
    said: list[dict[str, Any]] = []
    # What is for every role comes first, so that what is for one counts there.
    for text in sorted(typed, key=lambda each: _split_role(each, workflow)[0] or ""):
        role, command = _split_role(text, workflow)
        split_command(command)
        agent = {"command": command}
        said.append(agent)
        agents |= dict.fromkeys(workflow.roles if role is None else [role], agent)
    return Bound(agents, said)


def _split_role(text: str, workflow: Workflow) -> tuple[str | None, str]:
    """Read ``ROLE=CMD`` or ``CMD``; a command may hold a ``=`` of its own."""
    word, equals, command = text.partition("=")
    if not equals:
        return None, text
    if word in workflow.roles:
        return word, command
    if _ROLE_WORD.fullmatch(word):
        # No command begins so (only a shell would read it as a setting): a role was meant.
        raise NoSuchRole(word, workflow)
    return None, text
